"""The run in a terminal: one screen, words beside every colour, as many columns as fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tqforge.domain.report import figures, needles, verdict, words
from tqforge.domain.report.needles import Tally
from tqforge.domain.report.schema import MemoryRow, NeedleCell, QualityRow, Report, SpeedRow

_TONE = {
    verdict.Tone.GOOD: "bold green",
    verdict.Tone.MIXED: "bold yellow",
    verdict.Tone.BAD: "bold red",
    verdict.Tone.NONE: "bold magenta",
}
_MARK = {
    "passed": "green",
    "failed": "red",
    "error": "red",
    "losses": "yellow",
    "inconclusive": "yellow",
    "deferred": "magenta",
}
_KIND = {
    verdict.Kind.SHORT: ("\N{BALLOT X}", "red"),
    verdict.Kind.SHOWN: ("\N{CHECK MARK}", "green"),
    verdict.Kind.ADVICE: ("\N{RIGHTWARDS ARROW}", "cyan"),
    verdict.Kind.DEFERRED: ("\N{HORIZONTAL ELLIPSIS}", "magenta"),
}
#: What the pair table shows already is not said twice.
_IN_TABLE = {"needle", "quality", "speed"}
_ASCII = str.maketrans(
    {
        "\N{CHECK MARK}": "+",
        "\N{BALLOT X}": "x",
        "\N{RIGHTWARDS ARROW}": ">",
        "\N{HORIZONTAL ELLIPSIS}": ".",
        words.NONE: "-",
    }
)


def render(report: Report) -> RenderableType:
    """Pairs, needles by length, what fell short, what was shown and deferred, and the verdict at the end."""
    return _Screen(report)


def progress_note(cell: NeedleCell, so_far: Tally) -> str:
    """What the meter says after a cell: `tq3_0/tq3_0, 2,048 at 50 %: hit; 12 of 14`."""
    place = f"{words.line(cell.pair)}, {words.count(cell.length)} at {words.percent(cell.depth)}"
    return f"{place}: {cell.outcome}; {so_far.hits} of {so_far.n}"


@dataclass(frozen=True)
class _Screen:
    report: Report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, 128)
        tables = (*_pair_table(self.report, width), *_needle_table(self.report, width))
        group = Group(self._title(), *tables, *self._findings(), self._stages(width), self._headline())
        for line in console.render_lines(group, options.update(width=width), pad=False):
            yield from _trimmed(line, options.ascii_only)
            yield Segment.line()

    def _title(self) -> RenderableType:
        report = self.report
        name = words.line(report.model.name) if report.model else "no model"
        about = f"  {report.profile} run of {words.duration(report.seconds)}, tree {words.line(report.build.tree)[:12]}"
        return Padding(Text.assemble((name, "bold"), (about, "dim")), (1, 0, 1, 0))

    def _headline(self) -> RenderableType:
        """Last, because the end of a long output is what stays on the screen."""
        head = verdict.headline(self.report)
        return Text.assemble((f"{head.word}. ", _TONE[head.tone]), head.text)

    def _stages(self, width: int) -> RenderableType:
        """One mark per stage, never broken in the middle."""
        line, used = Text("\n"), 0
        for stage, mark in zip(self.report.stages, verdict.marks(self.report), strict=True):
            piece = f"{mark.sign} {words.STAGE_TITLE[stage.name].lower()} {mark.word}"
            gap = "" if not used else "  " if used + 2 + len(piece) <= width else "\n"
            used = len(piece) + (used + 2 if gap == "  " else 0)
            line.append(gap).append(piece, _MARK[mark.css])
        return Padding(line, (0, 0, 1, 0))

    def _findings(self) -> list[RenderableType]:
        parts: list[RenderableType] = []
        for kind in verdict.Kind:
            some = [f for f in verdict.findings(self.report) if f.kind is kind]
            some = [f for f in some if kind is not verdict.Kind.SHOWN or f.stage not in _IN_TABLE]
            if some:
                parts.append(Padding(Text(verdict.KIND_TITLE[kind], "bold"), (1, 0, 0, 0)))
                parts.append(_list(some, *_KIND[kind]))
        return parts


def _trimmed(line: list[Segment], ascii_only: bool) -> list[Segment]:
    """Without the blanks that only fill a line, and with plain signs where the terminal knows no others."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = kept[-1]._replace(text=kept[-1].text.rstrip())
    return [segment._replace(text=segment.text.translate(_ASCII)) for segment in kept] if ascii_only else kept


def _list(findings: Sequence[verdict.Finding], sign: str, style: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    for finding in findings:
        title = (f"{finding.title}. ", "bold") if finding.title else ("", "")
        grid.add_row(Text(sign, style), Text.assemble(title, words.line(finding.text)))
    return grid


@dataclass(frozen=True)
class _Facts:
    """All that is known of one pair."""

    pair: str
    memory: MemoryRow | None
    needles: Tally | None
    rate: str
    quality: QualityRow | None
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
        return words.NONE
    more = (f" {tally.inconclusive}?" if tally.inconclusive else "") + (f" {tally.errors}!" if tally.errors else "")
    return f"{tally.hits}/{tally.n}{more}"


def _ratio(row: SpeedRow | None) -> str:
    return words.percent(row.ratio_f16.value) if row and row.ratio_f16 else words.NONE


_COLUMNS = (
    _Column(
        "bits",
        lambda f: words.bits(figures.measured_bits(f.memory) if f.memory else f.quality.bits if f.quality else None),
    ),
    _Column("cache", lambda f: words.size(f.memory.k_measured + f.memory.v_measured) if f.memory else words.NONE),
    _Column("needles", lambda f: _tally(f.needles)),
    _Column("95 %", lambda f: f.rate, 4),
    _Column("KL", lambda f: words.kl(f.quality.kl.value) if f.quality else words.NONE),
    _Column("KL 95 %", lambda f: words.kl_range(f.quality.kl) if f.quality else words.NONE, 5),
    _Column("top-1", lambda f: words.percent(f.quality.top1.value) if f.quality else words.NONE),
    _Column("perplexity", lambda f: words.figure(f.quality.perplexity) if f.quality else words.NONE, 3),
    _Column("prefill/f16", lambda f: _ratio(f.prefill), 2),
    _Column("decode/f16", lambda f: _ratio(f.decode), 1),
)


def _facts(report: Report) -> list[_Facts]:
    memory = {row.pair: row for row in figures.memory_rows(report)}  # the longest context comes last
    maps = {chart.pair: chart.total for chart in needles.needle_maps(report) if not chart.must_miss}
    quality = {row.pair: row for row in figures.main_quality_rows(report)}
    speed = {(row.pair, row.phase): row for row in figures.speed_rows(report)}  # the deepest comes last
    pairs = {*report.pairs, *memory, *maps, *quality, *(pair for pair, _ in speed)}
    found = []
    for pair in sorted(pairs, key=figures.pair_order(report)):
        summary = needles.needle_summary(report, pair)
        rate = words.percent_range(summary.rate).replace(" to ", "-") if summary else words.NONE
        found.append(
            _Facts(
                pair,
                memory.get(pair),
                maps.get(pair),
                rate,
                quality.get(pair),
                speed.get((pair, "decode")),
                speed.get((pair, "prefill")),
            )
        )
    return found


def _pair_table(report: Report, width: int) -> list[RenderableType]:
    facts = _facts(report)
    filled = [(column, [column.cell(fact) for fact in facts]) for column in _COLUMNS]
    filled = [(column, cells) for column, cells in filled if any(cell != words.NONE for cell in cells)]
    if not filled:
        return []
    names = [words.line(fact.pair, 28) for fact in facts]
    while _width(names, filled) > width and any(column.spare for column, _ in filled):
        filled.remove(max(filled, key=lambda item: item[0].spare))
    table = _table("pair", [column.title for column, _ in filled])
    for place, fact in enumerate(facts):
        table.add_row(_name(fact.pair), *(Text(cells[place]) for _, cells in filled))
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


def _name(pair: str) -> Text:
    return Text(words.line(pair, 28), "bold" if figures.is_ours(pair) else "")


def _needle_table(report: Report, width: int) -> list[RenderableType]:
    """Needles found by length; only where there is more than one length, and as many lengths as fit."""
    maps = [chart for chart in needles.needle_maps(report) if not chart.must_miss]
    lengths = [length for length, _ in maps[0].rows] if maps else []
    if len(lengths) < 2:
        return []
    fit = max(1, (width - 20) // 11)
    shown = lengths[-fit:]
    table = _table("needles by tokens", [words.count(length) for length in shown])
    for chart in maps:
        rows = dict(chart.rows)
        table.add_row(_name(chart.pair), *(Text(_tally(needles.together(rows[length]))) for length in shown))
    legend = Text("found/judged, ? inconclusive because f16 missed, ! ended by an error", "dim")
    return [Padding(table, (1, 0, 0, 0)), legend]
