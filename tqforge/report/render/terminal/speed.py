"""Stage speed in the terminal: rates by depth, and the ratios that have a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tqforge.report import fmt
from tqforge.report.judge import select
from tqforge.report.judge.select import TargetStatus
from tqforge.report.render.sentences import facts
from tqforge.report.render.terminal.table import Column, table
from tqforge.report.schema.base import Interval
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import SpeedRatio, SpeedRow
from tqforge.report.schema.stages import SpeedStage

_PHASES = ("prefill", "decode", "end-to-end")
_MARK = {
    TargetStatus.MET: ("\N{CHECK MARK}", "green"),
    TargetStatus.MISSED: ("\N{BALLOT X}", "red"),
    TargetStatus.NOT_DECIDED: ("?", "yellow"),
    None: ("", ""),
}
_LEGEND = (
    "Tokens per second, half the 95% range of the median, and the share of attention "
    "(the part of the time that depth 0 does not need)."
)
_TARGETS = "\N{CHECK MARK} target met, \N{BALLOT X} missed, ? undecided (within the spread); no sign: no target."


def speed(report: Report, width: int) -> list[RenderableType]:
    """A table of rates per phase, one of ratios, and a warning if the machine was busy."""
    return [part for stage in select.stages_of(report, SpeedStage) for part in _stage(report, stage, width)]


def _stage(report: Report, stage: SpeedStage, width: int) -> Iterator[RenderableType]:
    rows = labelled(report, stage)
    depths = sorted({row.depth for _, row in rows})
    for phase in _PHASES:
        some = [(label, row) for label, row in rows if row.phase == phase]
        if some:
            yield Padding(_rates(phase, depths, some, width), (1, 0, 0, 0))
    if rows:
        yield Text(_LEGEND, "dim")
    if stage.ratios:
        yield Padding(_ratios(stage, depths, width), (1, 0, 0, 0))
        yield Text(_TARGETS, "dim")
    if noise := facts.noise(stage.spread, stage.busy):
        yield Text(noise, "bold yellow")


def labelled(report: Report, stage: SpeedStage) -> list[tuple[str, SpeedRow]]:
    """All rows by pair: those of this build, of the other build, and of llama-bench."""
    order = select.pair_order(report)
    sets = (("", stage.rows), ("other build", stage.compared), ("llama-bench", stage.llama_bench))
    found = [(f"{row.pair} {kind}".strip(), row) for kind, rows in sets for row in rows]
    return sorted(found, key=lambda item: order(item[1].pair))


def _columns(depths: Sequence[int], cells: Sequence[dict[int, Text]]) -> list[Column]:
    """One column per depth; the shallowest is dropped first."""
    return [
        Column(fmt.count(depth), [row.get(depth, Text(fmt.NONE)) for row in cells], len(depths) - place)
        for place, depth in enumerate(depths, 1)
    ]


def _rates(phase: str, depths: Sequence[int], rows: Sequence[tuple[str, SpeedRow]], width: int) -> Table:
    names, cells = [], []
    for label in dict.fromkeys(label for label, _ in rows):
        own = [row for name, row in rows if name == label]
        names.append(Text(label, "bold" if any(row.pair.has_tq3_0 for row in own) else ""))
        cells.append({row.depth: _rate(row) for row in own})
    return table(Column(f"{phase} at depth", names), _columns(depths, cells), width, missing="also at depth")


def _rate(row: SpeedRow) -> Text:
    share = f" {fmt.percent(row.depth_share)}" if row.depth_share is not None else ""
    return Text(f"{fmt.figure(row.rate.value)}{_spread(row.rate)}{share}", "red" if select.slower_than(row) else "")


def _spread(band: Interval) -> str:
    half = (band.high - band.low) / 2 / band.value if band.value else 0.0
    return f" \N{PLUS-MINUS SIGN}{100 * half:.0f}%" if half else ""


def _ratios(stage: SpeedStage, depths: Sequence[int], width: int) -> Table:
    """One row per comparison, each target with whether it was met."""
    names, cells = [], []
    for key in dict.fromkeys(map(_comparison, stage.ratios)):
        own = [ratio for ratio in stage.ratios if _comparison(ratio) == key]
        build = f" of {fmt.line(own[0].build, 16)}" if own[0].build else ""
        names.append(Text(f"{own[0].pair} vs {own[0].against}{build}\n  {own[0].phase}"))
        cells.append({ratio.depth: _ratio(ratio) for ratio in own})
    return table(Column("rate ratio", names), _columns(depths, cells), width, missing="also at depth")


def _comparison(ratio: SpeedRatio) -> tuple[object, ...]:
    return ratio.pair, ratio.against, ratio.build, ratio.phase


def _ratio(ratio: SpeedRatio) -> Text:
    sign, style = _MARK[select.target_status(ratio)]
    return Text(f"{fmt.figure(ratio.ratio.value)}{_spread(ratio.ratio)} {sign}".rstrip(), style)
