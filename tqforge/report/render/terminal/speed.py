"""The speed of a run in the terminal: rates and the share of attention by depth, and what they are held against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tqforge.report import fmt
from tqforge.report.judge import select
from tqforge.report.judge.select import TargetStatus
from tqforge.report.render.sentences import facts
from tqforge.report.schema.base import Interval
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import SpeedRow
from tqforge.report.schema.stages import SpeedStage

_PHASES = ("prefill", "decode", "end-to-end")
_MARK = {
    TargetStatus.MET: ("\N{CHECK MARK}", "green"),
    TargetStatus.MISSED: ("\N{BALLOT X}", "red"),
    TargetStatus.NOT_DECIDED: ("?", "yellow"),
    None: ("", ""),
}
_CELL = 16
_LEGEND = (
    "Tokens per second, half the 95 % range of the median, and the share of attention: "
    "the part of the time that depth 0 does not have."
)
_AIMS = "\N{CHECK MARK} the aim is met, \N{BALLOT X} missed, ? the spread leaves it open; no sign: no aim."


def speed(report: Report, width: int) -> list[RenderableType]:
    """A table of rates per phase, one of ratios, and whether the machine was quiet."""
    return [part for stage in select.stages_of(report, SpeedStage) for part in _stage(report, stage, width)]


def _stage(report: Report, stage: SpeedStage, width: int) -> Iterator[RenderableType]:
    rows = labelled(report, stage)
    depths = sorted({row.depth for _, row in rows})[-max(1, (width - 26) // _CELL) :]
    for phase in _PHASES:
        some = [(label, row) for label, row in rows if row.phase == phase and row.depth in depths]
        if some:
            yield Padding(_rates(phase, depths, some), (1, 0, 0, 0))
    if rows:
        left_out = sorted({row.depth for _, row in rows} - set(depths))
        more = f" The report has depth {fmt.listing(map(fmt.count, left_out))} too." if left_out else ""
        yield Text(_LEGEND + more, "dim")
    if stage.ratios:
        yield Padding(_ratios(stage, depths), (1, 0, 0, 0))
        yield Text(_AIMS, "dim")
    if noise := facts.noise(stage.spread, stage.busy):
        yield Text(noise, "bold yellow")


def labelled(report: Report, stage: SpeedStage) -> list[tuple[str, SpeedRow]]:
    """All rows by pair: ours, those of the other build, those of llama-bench."""
    order = select.pair_order(report)
    sets = (("", stage.rows), ("other build", stage.compared), ("llama-bench", stage.llama_bench))
    found = [(f"{row.pair} {kind}".strip(), row) for kind, rows in sets for row in rows]
    return sorted(found, key=lambda item: order(item[1].pair))


def _rates(phase: str, depths: Sequence[int], rows: Sequence[tuple[str, SpeedRow]]) -> Table:
    table = _table(f"{phase} at depth", [fmt.count(depth) for depth in depths])
    for label in dict.fromkeys(label for label, _ in rows):
        cells = {row.depth: row for name, row in rows if name == label}
        style = "bold" if any(row.pair.has_tq3_0 for row in cells.values()) else ""
        table.add_row(Text(label, style), *(_cell(cells.get(depth)) for depth in depths))
    return table


def _cell(row: SpeedRow | None) -> Text:
    if row is None:
        return Text(fmt.NONE)
    share = f" {fmt.percent(row.depth_share)}" if row.depth_share is not None else ""
    return Text(f"{fmt.figure(row.rate.value)}{_around(row.rate)}{share}", "red" if select.slower_than(row) else "")


def _around(band: Interval) -> str:
    half = (band.high - band.low) / 2 / band.value if band.value else 0.0
    return f" \N{PLUS-MINUS SIGN}{100 * half:.0f}%" if half else ""


def _ratios(stage: SpeedStage, depths: Sequence[int]) -> Table:
    """One row per comparison; an aim is named with what became of it."""
    table = _table("times the rate of", [fmt.count(depth) for depth in depths])
    for pair, against, build, phase in dict.fromkeys((r.pair, r.against, r.build, r.phase) for r in stage.ratios):
        key = (pair, against, build, phase)
        own = {r.depth: r for r in stage.ratios if (r.pair, r.against, r.build, r.phase) == key}
        cells = []
        for depth in depths:
            ratio = own.get(depth)
            sign, style = _MARK[select.target_status(ratio) if ratio else None]
            text = f"{fmt.figure(ratio.ratio.value)}{_around(ratio.ratio)} {sign}" if ratio else fmt.NONE
            cells.append(Text(text.rstrip(), style))
        table.add_row(Text(f"{pair} : {against}{f' of {fmt.line(build, 16)}' if build else ''}\n  {phase}"), *cells)
    return table


def _table(first: str, titles: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column(first)
    for title in titles:
        table.add_column(title, justify="right")
    return table
