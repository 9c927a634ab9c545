"""The pair table of the terminal: one row per pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from tqforge.core.pair import Pair
from tqforge.report import fmt
from tqforge.report.judge import needles, pair_levels, select
from tqforge.report.judge.needles import Tally
from tqforge.report.render.terminal.table import Column, table
from tqforge.report.schema.base import PairLevel
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import MemoryRow, NeedleSummary, QualityRow, SpeedRow


@dataclass(frozen=True)
class _Pair:
    """Everything the report holds about one pair."""

    name: Pair
    memory: MemoryRow | None
    needles: Tally | None
    summary: NeedleSummary | None
    quality: QualityRow | None
    level: str
    prefill: SpeedRow | None
    decode: SpeedRow | None


def _bits(pair: _Pair) -> str:
    if pair.memory:
        return fmt.bits(select.measured_bits(pair.memory))
    return fmt.bits(pair.quality.bits if pair.quality else None)


def _cache(pair: _Pair) -> str:
    return fmt.size(pair.memory.k_measured + pair.memory.v_measured if pair.memory else None)


def _found(tally: Tally | None) -> str:
    if tally is None or not tally.total:
        return fmt.NONE
    more = (f" {tally.inconclusive}?" if tally.inconclusive else "") + (f" {tally.errors}!" if tally.errors else "")
    return f"{tally.hits}/{tally.n}{more}"


def _found_range(pair: _Pair) -> str:
    return fmt.percent_range(pair.summary.rate).replace(" to ", "-") if pair.summary else fmt.NONE


def _ratio(row: SpeedRow | None) -> str:
    return fmt.percent(row.ratio_f16.value) if row and row.ratio_f16 else fmt.NONE


#: Title, what stands in a cell, and what is dropped first on a narrow screen (the highest number).
_COLUMNS: tuple[tuple[str, Callable[[_Pair], str], int], ...] = (
    ("bits", _bits, 2),
    ("cache", _cache, 4),
    ("needles", lambda pair: _found(pair.needles), 3),
    ("95%", _found_range, 9),
    ("KL", lambda pair: fmt.kl(pair.quality.kl.value if pair.quality else None), 1),
    ("KL 95%", lambda pair: fmt.kl_range(pair.quality.kl if pair.quality else None), 10),
    ("top-1", lambda pair: fmt.percent(pair.quality.top1.value if pair.quality else None), 5),
    ("perplexity", lambda pair: fmt.figure(pair.quality.perplexity if pair.quality else None), 8),
    ("verdict", lambda pair: pair.level, 0),
    ("prefill/f16", lambda pair: _ratio(pair.prefill), 7),
    ("decode/f16", lambda pair: _ratio(pair.decode), 6),
)
_REFERENCE = Pair.both("f16")
_LEVEL_STYLE: dict[str, str] = {
    PairLevel.SAFE: "green",
    PairLevel.UNDECIDED: "magenta",
    PairLevel.LOSSY: "yellow",
    PairLevel.UNSAFE: "red",
}


def _pairs(report: Report) -> list[_Pair]:
    memory = {row.pair: row for row in select.memory_rows(report)}  # the longest context comes last
    maps = {chart.pair: chart.total for chart in needles.needle_maps(report) if not chart.must_miss}
    quality = {row.pair: row for row in select.main_quality_rows(report) if not row.unrotated}
    levels = {one.pair: str(one.level) for one in pair_levels.judge(report) if not one.unrotated}
    speed = {(row.pair, row.phase): row for row in select.speed_rows(report)}  # the deepest comes last
    names = {*report.pairs, *memory, *maps, *quality, *(pair for pair, _ in speed)}
    return [
        _Pair(
            name,
            memory.get(name),
            maps.get(name),
            needles.needle_summary(report, name),
            quality.get(name),
            levels.get(name, "reference" if levels and name == _REFERENCE else fmt.NONE),
            speed.get((name, "prefill")),
            speed.get((name, "decode")),
        )
        for name in sorted(names, key=select.pair_order(report))
    ]


def pairs(report: Report, width: int) -> list[RenderableType]:
    """One row per pair; columns without a single figure are left out."""
    rows = _pairs(report)
    filled = [(title, [cell(row) for row in rows], drop) for title, cell, drop in _COLUMNS]
    columns = [
        Column(title, [Text(cell, _LEVEL_STYLE.get(cell, "")) for cell in cells], drop)
        for title, cells, drop in filled
        if any(cell != fmt.NONE for cell in cells)
    ]
    return [table(Column("pair", [_name(row.name) for row in rows]), columns, width)] if columns else []


def _name(pair: Pair) -> Text:
    return Text(str(pair), "bold" if pair.has_tq3_0 else "")


def needles_by_length(report: Report, width: int) -> list[RenderableType]:
    """Needles found by text length, where there is more than one length; the longest lengths stay."""
    maps = [chart for chart in needles.needle_maps(report) if not chart.must_miss]
    lengths = [length for length, _ in maps[0].rows] if maps else []
    if len(lengths) < 2:
        return []
    rows = [dict(chart.rows) for chart in maps]
    columns = [
        Column(fmt.count(length), [Text(_found(needles.together(row[length]))) for row in rows], len(lengths) - place)
        for place, length in enumerate(lengths, 1)
    ]
    names = Column("needles by tokens", [_name(chart.pair) for chart in maps])
    legend = Text("found/judged; ? inconclusive because f16 missed it; ! error", "dim")
    return [Padding(table(names, columns, width, missing="also at"), (1, 0, 0, 0)), legend]
