"""The tables of the terminal: a row per pair, as many columns as fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tqforge.core.pair import Pair
from tqforge.report import fmt
from tqforge.report.judge import needles, pair_levels, select
from tqforge.report.judge.needles import Tally
from tqforge.report.schema.base import PairLevel
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import MemoryRow, QualityRow, SpeedRow


@dataclass(frozen=True)
class _Facts:
    """All that is known of one pair."""

    pair: Pair
    memory: MemoryRow | None
    needles: Tally | None
    rate: str
    quality: QualityRow | None
    level: str
    decode: SpeedRow | None
    prefill: SpeedRow | None


@dataclass(frozen=True)
class _Column:
    """A column, and how readily it is left out on a narrow screen: 0 stays."""

    title: str
    cell: Callable[[_Facts], str]
    spare: int = 0


def _tally(tally: Tally | None) -> str:
    if tally is None or not tally.total:
        return fmt.NONE
    more = (f" {tally.inconclusive}?" if tally.inconclusive else "") + (f" {tally.errors}!" if tally.errors else "")
    return f"{tally.hits}/{tally.n}{more}"


def _ratio(row: SpeedRow | None) -> str:
    return fmt.percent(row.ratio_f16.value) if row and row.ratio_f16 else fmt.NONE


_LEVEL_STYLE: dict[str, str] = {
    PairLevel.SAFE: "green",
    PairLevel.UNDECIDED: "magenta",
    PairLevel.LOSSY: "yellow",
    PairLevel.UNSAFE: "red",
}
_COLUMNS = (
    _Column(
        "bits",
        lambda f: fmt.bits(select.measured_bits(f.memory) if f.memory else f.quality.bits if f.quality else None),
    ),
    _Column("cache", lambda f: fmt.size(f.memory.k_measured + f.memory.v_measured) if f.memory else fmt.NONE),
    _Column("needles", lambda f: _tally(f.needles)),
    _Column("95 %", lambda f: f.rate, 4),
    _Column("KL", lambda f: fmt.kl(f.quality.kl.value) if f.quality else fmt.NONE),
    _Column("KL 95 %", lambda f: fmt.kl_range(f.quality.kl) if f.quality else fmt.NONE, 5),
    _Column("top-1", lambda f: fmt.percent(f.quality.top1.value) if f.quality else fmt.NONE),
    _Column("perplexity", lambda f: fmt.figure(f.quality.perplexity) if f.quality else fmt.NONE, 3),
    _Column("on this model", lambda f: f.level),
    _Column("prefill/f16", lambda f: _ratio(f.prefill), 2),
    _Column("decode/f16", lambda f: _ratio(f.decode), 1),
)


def _facts(report: Report) -> list[_Facts]:
    memory = {row.pair: row for row in select.memory_rows(report)}  # the longest context comes last
    maps = {chart.pair: chart.total for chart in needles.needle_maps(report) if not chart.must_miss}
    quality = {row.pair: row for row in select.main_quality_rows(report) if not row.unrotated}
    levels = {one.pair: str(one.level) for one in pair_levels.judge(report) if not one.unrotated}
    speed = {(row.pair, row.phase): row for row in select.speed_rows(report)}  # the deepest comes last
    pairs = {*report.pairs, *memory, *maps, *quality, *(pair for pair, _ in speed)}
    found = []
    for pair in sorted(pairs, key=select.pair_order(report)):
        summary = needles.needle_summary(report, pair)
        rate = fmt.percent_range(summary.rate).replace(" to ", "-") if summary else fmt.NONE
        found.append(
            _Facts(
                pair,
                memory.get(pair),
                maps.get(pair),
                rate,
                quality.get(pair),
                levels.get(pair, fmt.NONE),
                speed.get((pair, "decode")),
                speed.get((pair, "prefill")),
            )
        )
    return found


def pairs(report: Report, width: int) -> list[RenderableType]:
    """One row per pair; columns without a single figure are left out, and on a narrow screen the spare ones."""
    facts = _facts(report)
    filled = [(column, [column.cell(fact) for fact in facts]) for column in _COLUMNS]
    filled = [(column, cells) for column, cells in filled if any(cell != fmt.NONE for cell in cells)]
    if not filled:
        return []
    names = [str(fact.pair) for fact in facts]
    while _width(names, filled) > width and any(column.spare for column, _ in filled):
        filled.remove(max(filled, key=lambda item: item[0].spare))
    table = _table("pair", [column.title for column, _ in filled])
    for place, fact in enumerate(facts):
        table.add_row(
            _name(fact.pair), *(Text(cells[place], _LEVEL_STYLE.get(cells[place], "")) for _, cells in filled)
        )
    return [table]


def _width(names: Sequence[str], filled: Sequence[tuple[_Column, list[str]]]) -> int:
    columns = [names, *([column.title, *cells] for column, cells in filled)]
    return sum(max(map(len, cells)) + 3 for cells in columns) - 3


def _table(first: str, titles: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column(first, no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _name(pair: Pair) -> Text:
    return Text(str(pair), "bold" if pair.has_tq3_0 else "")


def needles_by_length(report: Report, width: int) -> list[RenderableType]:
    """Needles found by length; only where there is more than one length, and as many lengths as fit."""
    maps = [chart for chart in needles.needle_maps(report) if not chart.must_miss]
    lengths = [length for length, _ in maps[0].rows] if maps else []
    if len(lengths) < 2:
        return []
    fit = max(1, (width - 20) // 11)
    shown = lengths[-fit:]
    table = _table("needles by tokens", [fmt.count(length) for length in shown])
    for chart in maps:
        rows = dict(chart.rows)
        table.add_row(_name(chart.pair), *(Text(_tally(needles.together(rows[length]))) for length in shown))
    legend = Text("found/judged, ? inconclusive because f16 missed, ! ended by an error", "dim")
    return [Padding(table, (1, 0, 0, 0)), legend]
