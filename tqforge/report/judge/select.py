"""What a report holds, arranged for reading: stages by name, needle maps, memory and quality by pair. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeVar

from tqforge.core.pair import Pair
from tqforge.report.schema.base import CellOutcome, StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import MemoryRow, OpsRow, QualityRow, SpeedRatio, SpeedRow
from tqforge.report.schema.stages import (
    CheckStage,
    MemoryStage,
    NeedleStage,
    OpsStage,
    PlanStage,
    QualityStage,
    SpeedStage,
    Stage,
)

STAGE_ORDER = ("source", "codec", "ops", "placement", "device", "memory", "needle", "quality", "plan", "speed")

_S = TypeVar("_S")


def stages_of(report: Report, kind: type[_S]) -> list[_S]:
    """The stages of one class."""
    return [stage for stage in report.stages if isinstance(stage, kind)]


def missing_stages(report: Report) -> list[str]:
    """The stages that this run was not asked for."""
    there = {*report.asked, *(stage.name for stage in report.stages)}
    return [name for name in STAGE_ORDER if name not in there]


def unreached_stages(report: Report) -> list[str]:
    """The stages that this run was asked for and that it did not come to."""
    there = {stage.name for stage in report.stages}
    return [name for name in report.asked if name not in there]


def observations(stage: Stage) -> int:
    """How many things a stage has to show."""
    if isinstance(stage, CheckStage):
        return sum(check.status in (StageStatus.PASSED, StageStatus.FAILED) for check in stage.checks)
    if isinstance(stage, NeedleStage):
        return sum(cell.outcome not in (CellOutcome.ERROR, CellOutcome.INCONCLUSIVE) for cell in stage.cells)
    if isinstance(stage, OpsStage):
        return sum(row.passed + row.failed for row in stage.rows)
    return len(stage.rows)


def effective(stage: Stage) -> StageStatus:
    """The status of a stage, never better than what it holds: nothing observed is nothing shown."""
    if stage.status is not StageStatus.PASSED:
        return stage.status
    if isinstance(stage, CheckStage) and any(check.status is StageStatus.FAILED for check in stage.checks):
        return StageStatus.FAILED
    if isinstance(stage, CheckStage) and any(check.status is StageStatus.ERROR for check in stage.checks):
        return StageStatus.ERROR
    if isinstance(stage, OpsStage) and any(row.failed for row in stage.rows):
        return StageStatus.FAILED
    if isinstance(stage, MemoryStage) and not all(matches(row) for row in stage.rows):
        return StageStatus.FAILED
    return StageStatus.PASSED if observations(stage) else StageStatus.INCONCLUSIVE


def pair_order(report: Report) -> Callable[[Pair], tuple[int, Pair]]:
    """A sort key: pairs as they were asked for, then any other by name."""
    place = {pair: index for index, pair in enumerate(report.pairs)}
    return lambda pair: (place.get(pair, len(place)), pair)


def memory_rows(report: Report) -> list[MemoryRow]:
    order = pair_order(report)
    rows = [row for stage in stages_of(report, MemoryStage) for row in stage.rows]
    return sorted(rows, key=lambda row: (row.n_ctx, order(row.pair)))


def matches(row: MemoryRow) -> bool:
    """Whether the buffers have the size that the formula gives, to the byte."""
    return (row.k_measured, row.v_measured) == (row.k_formula, row.v_formula)


def measured_bits(row: MemoryRow) -> float | None:
    """Bits per value of K and V together, from the allocated buffers."""
    values = row.k_values + row.v_values
    return 8 * (row.k_measured + row.v_measured) / values if values else None


def block_words(size: int, values: int) -> str:
    """`14/32` bytes per value, or a decimal figure where it is no whole number per 32 values."""
    share = Fraction(32 * size, values) if values else Fraction(0)
    return f"{share.numerator}/32" if share.denominator == 1 else f"{float(share) / 32:.4f}"


def quality_rows(report: Report) -> list[QualityRow]:
    """All rows, the longest prefix first, floors before pairs."""
    order = pair_order(report)
    rows = [row for stage in stages_of(report, QualityStage) for row in stage.rows]
    return sorted(rows, key=lambda row: (-row.prefix, not row.is_floor, order(row.pair), row.unrotated))


def main_quality_rows(report: Report) -> list[QualityRow]:
    """The rows at the longest prefix: the hardest and the closest to real use."""
    rows = quality_rows(report)
    longest = max((row.prefix for row in rows), default=0)
    return [row for row in rows if row.prefix == longest]


def pareto(rows: Iterable[QualityRow]) -> list[QualityRow]:
    """The rows that no other row beats in both bits and KL, by rising bits; nobody runs without rotation."""
    front: list[QualityRow] = []
    usual = (row for row in rows if not (row.is_floor or row.unrotated))
    for row in sorted(usual, key=lambda row: (row.bits, row.kl.value)):
        if not front or row.kl.value < front[-1].kl.value:
            front.append(row)
    return front


def ops_rows(report: Report) -> list[OpsRow]:
    return [row for stage in stages_of(report, OpsStage) for row in stage.rows]


def plan_stage(report: Report) -> PlanStage | None:
    return next(iter(stages_of(report, PlanStage)), None)


def speed_rows(report: Report) -> list[SpeedRow]:
    order = pair_order(report)
    phases = {"prefill": 0, "decode": 1, "end-to-end": 2}
    rows = [row for stage in stages_of(report, SpeedStage) for row in stage.rows]
    return sorted(rows, key=lambda row: (phases[row.phase], row.depth, order(row.pair)))


def standing(ratio: SpeedRatio) -> str:
    """`met`, `missed`, or `not decided` where the interval lies on both sides of the aim; empty without an aim.

    A single round decides nothing.
    """
    if ratio.bar is None:
        return ""
    if ratio.rounds < 2:
        return "not decided"
    if ratio.ratio.low >= ratio.bar:
        return "met"
    return "missed" if ratio.ratio.high < ratio.bar else "not decided"
