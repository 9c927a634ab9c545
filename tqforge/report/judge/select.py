"""Select and order the rows of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TypeVar

from tqforge.core.pair import F16, Pair
from tqforge.report.judge.thresholds import LEAST_ROUNDS, SLOW
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

_S = TypeVar("_S")


def stages_of(report: Report, kind: type[_S]) -> list[_S]:
    """Return the stages with one type of record."""
    return [stage for stage in report.stages if isinstance(stage, kind)]


def unreached_stages(report: Report) -> list[str]:
    """Return the stages that the run was asked for and did not reach."""
    there = {stage.name for stage in report.stages}
    return [name for name in report.asked if name not in there]


def observations(stage: Stage) -> int:
    """Count what a stage observed."""
    if isinstance(stage, CheckStage):
        return sum(check.status in (StageStatus.PASSED, StageStatus.FAILED) for check in stage.checks)
    if isinstance(stage, NeedleStage):
        return sum(cell.outcome not in (CellOutcome.ERROR, CellOutcome.INCONCLUSIVE) for cell in stage.cells)
    if isinstance(stage, OpsStage):
        return sum(row.passed + row.failed for row in stage.rows)
    return len(stage.rows)


def effective(stage: Stage) -> StageStatus:
    """Return the status of a stage, never better than its rows: nothing observed is inconclusive."""
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
    """Return a sort key: pairs as they were asked for, then any other by name."""
    place = {pair: index for index, pair in enumerate(report.pairs)}
    return lambda pair: (place.get(pair, len(place)), pair)


def memory_rows(report: Report) -> list[MemoryRow]:
    order = pair_order(report)
    rows = [row for stage in stages_of(report, MemoryStage) for row in stage.rows]
    return sorted(rows, key=lambda row: (row.n_ctx, order(row.pair)))


def matches(row: MemoryRow) -> bool:
    """Return whether the tensors have the size that the block sizes give, to the byte."""
    return (row.k_measured, row.v_measured) == (row.k_formula, row.v_formula)


def measured_bits(row: MemoryRow) -> float | None:
    """Return the bits per value of K and V together, as allocated."""
    values = row.k_values + row.v_values
    return 8 * (row.k_measured + row.v_measured) / values if values else None


def quality_rows(report: Report) -> list[QualityRow]:
    """Return all rows, the longest prefix first, floors before pairs."""
    order = pair_order(report)
    rows = [row for stage in stages_of(report, QualityStage) for row in stage.rows]
    return sorted(rows, key=lambda row: (-row.prefix, not row.is_floor, order(row.pair), row.unrotated))


def main_quality_rows(report: Report) -> list[QualityRow]:
    """Return the rows at the longest prefix: the hardest and the closest to real use."""
    rows = quality_rows(report)
    longest = max((row.prefix for row in rows), default=0)
    return [row for row in rows if row.prefix == longest]


def pareto(rows: Iterable[QualityRow]) -> list[QualityRow]:
    """Return the rows that no other beats in both bits and KL, by rising bits."""
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


class TargetStatus(StrEnum):
    """Whether a rate met its target; not decided where the interval lies on both sides, or after a single round."""

    MET = "met"
    MISSED = "missed"
    NOT_DECIDED = "not decided"


def target_status(ratio: SpeedRatio) -> TargetStatus | None:
    """Return the status, or None without a target."""
    if ratio.target is None:
        return None
    if ratio.rounds >= LEAST_ROUNDS and ratio.ratio.low >= ratio.target:
        return TargetStatus.MET
    missed = ratio.rounds >= LEAST_ROUNDS and ratio.ratio.high < ratio.target
    return TargetStatus.MISSED if missed else TargetStatus.NOT_DECIDED


def slower_than(row: SpeedRow) -> list[Pair]:
    """Return f16 and the stock neighbour where the row is so much slower that a fallback is suspected."""
    ratios = {F16: row.ratio_f16, row.neighbour: row.ratio_neighbour}
    return [other for other, ratio in ratios.items() if other and ratio and ratio.value < SLOW]
