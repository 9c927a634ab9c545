"""Judge the rows of a stage: passed, failed, skipped or inconclusive, with the reasons as facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tqforge.core.pair import F16
from tqforge.report.judge import facts, reasons, select
from tqforge.report.judge.facts import Fact
from tqforge.report.judge.reasons import DeviceFault, DeviceProblem, Missing
from tqforge.report.judge.thresholds import PLAN_SLACK, by_kl, by_needles, device_limit, is_noisy, write_limit
from tqforge.report.schema.base import CellOutcome, Interval, PairLevel, StageStatus
from tqforge.report.schema.rows import DeviceRow, OpsRow, PlanRow
from tqforge.report.schema.stages import (
    CheckStage,
    DeviceStage,
    MemoryStage,
    NeedleStage,
    OpsStage,
    PlanStage,
    QualityStage,
    SpeedStage,
)


@dataclass(frozen=True)
class Verdict:
    """The status of a stage and why."""

    status: StageStatus
    reasons: tuple[Fact, ...] = ()


PASSED = Verdict(StageStatus.PASSED)
NOTHING = Verdict(StageStatus.INCONCLUSIVE, (reasons.NothingMeasured(),))


def _failed(*why: Fact) -> Verdict:
    return Verdict(StageStatus.FAILED, why)


def checks(stage: CheckStage) -> Verdict:
    """Fail by one failed check; a stage without any is inconclusive."""
    bad = tuple(check for check in stage.checks if check.status in (StageStatus.FAILED, StageStatus.ERROR))
    if bad:
        return _failed(reasons.ChecksFailed(bad))
    return PASSED if stage.checks else NOTHING


def all_checks(stage: CheckStage) -> Verdict:
    """Judge as `checks`, but skip the stage if a check was skipped."""
    skipped = tuple(check for check in stage.checks if check.status is StageStatus.SKIPPED)
    found = checks(stage)
    if found is PASSED and skipped:
        return Verdict(StageStatus.SKIPPED, (reasons.ChecksFailed(skipped),))
    return found


def ops(stage: OpsStage) -> Verdict:
    """Fail by one wrong case, one fault, or one run without a case. Without a device the stage is skipped."""
    if not stage.rows:
        return NOTHING
    if bad := tuple(row for row in stage.rows if not is_good(row)):
        return _failed(reasons.OpsFailed(bad))
    return Verdict(StageStatus.SKIPPED, (reasons.NoDevice(stage.no_device),)) if stage.no_device else PASSED


def is_good(row: OpsRow) -> bool:
    """Return whether at least one case agreed, none was wrong, and the run ended well."""
    return row.passed > 0 and row.failed == 0 and not row.note


def memory(stage: MemoryStage) -> Verdict:
    """Fail by one byte of difference, and for a side without values."""
    wrong = tuple(facts.MemoryOff(row) for row in stage.rows if not select.matches(row) or not row.k_values)
    if not stage.rows:
        return _failed(reasons.NothingMeasured())
    return _failed(*wrong) if wrong else PASSED


def plan(stage: PlanStage) -> Verdict:
    """Fail when a cache was planned wrongly, beyond the rounding of the log."""
    wrong = tuple(reasons.PlanOff(row, off(row)) for row in stage.rows if off(row))
    return _failed(*wrong) if wrong else PASSED


def off(row: PlanRow) -> int:
    """Return by how many bytes the cache was planned wrongly; rounding of the log is none."""
    if row.measured is None:
        return 0
    gap = abs(row.measured.kv + row.measured.kv_swa - row.planned.kv - row.planned.kv_swa)
    return gap if gap > PLAN_SLACK else 0


def needle(stage: NeedleStage) -> Verdict:
    """Fail by an error, a fact found where none was hidden, or a pair that is useless for long texts.

    How much the other pairs lose is a figure and no failure of the build.
    """
    guessed = sum(cell.control == "no-needle" and bool(cell.score) for cell in stage.cells)
    errors = tuple(sorted({cell.pair for cell in stage.cells if cell.outcome is CellOutcome.ERROR}))
    tested = [row for row in stage.summaries if row.length is None and row.pair != F16]
    lost = [row for row in tested if row.n and by_needles(row.hits, row.n, row.rate) is PairLevel.UNSAFE]
    why: list[Fact] = [reasons.NeedlesGuessed(guessed)] if guessed else []
    why += [reasons.NeedleErrors(errors)] if errors else []
    why += [reasons.NeedlesLost(row) for row in lost]
    if why:
        return _failed(*why)
    if not stage.cells or (tested and not any(row.n for row in tested)):
        return Verdict(StageStatus.INCONCLUSIVE, (reasons.ReferenceFindsNothing(),))
    return PASSED


def quality(stage: QualityStage) -> Verdict:
    """Fail when a pair breaks the model; how good the others are is for the reader of the figures."""
    if not stage.rows:
        return NOTHING
    rows = [row for row in stage.rows if not (row.is_floor or row.unrotated) and by_kl(row.kl) is PairLevel.UNSAFE]
    return _failed(reasons.ModelBroken(tuple({row.pair: row for row in rows}.values()))) if rows else PASSED


def speed(stage: SpeedStage) -> Verdict:
    """Fail when a pair with tq3_0 seems to fall back to a slow path; on a noisy machine that is inconclusive."""
    if not stage.rows:
        return NOTHING
    slow = tuple(row for row in stage.rows if row.pair.has_tq3_0 and select.slower_than(row))
    if not slow:
        return PASSED
    noisy = is_noisy(stage.spread, stage.busy)
    status = StageStatus.INCONCLUSIVE if noisy else StageStatus.FAILED
    return Verdict(status, (reasons.FallbackSuspected(slow, noisy),))


def device(stage: DeviceStage) -> Verdict:
    """Fail by one bad pair. Without f16/f16, which gives the floor, or without the same rows it is inconclusive."""
    control = next((row for row in stage.rows if row.pair == F16), None)
    if control is None:
        return Verdict(StageStatus.INCONCLUSIVE, (reasons.DeviceOpen(Missing.FLOOR),))
    floor = device_floor(control)
    found = [reasons.DeviceFailed(row.pair, tuple(device_problems(row, floor))) for row in stage.rows]
    if bad := [fact for fact in found if fact.problems]:
        return _failed(*bad)
    if len(stage.rows) < 2:
        return Verdict(StageStatus.INCONCLUSIVE, (reasons.DeviceOpen(Missing.PAIRS),))
    unseen = tuple(row.pair for row in stage.rows if row.kl_same is None or row.error_device is None)
    return Verdict(StageStatus.INCONCLUSIVE, (reasons.DeviceOpen(Missing.SAME_ROWS, unseen),)) if unseen else PASSED


def device_floor(control: DeviceRow) -> float:
    """Return what two backends differ by with an exact cache."""
    return (control.kl_same or control.kl).value


def with_limits(rows: Sequence[DeviceRow]) -> tuple[DeviceRow, ...]:
    """Add what each pair may differ by; f16/f16, the first row, has no limit."""
    return tuple(
        row if row.pair == F16 else row.model_copy(update={"limit": device_limit(device_floor(rows[0]))})
        for row in rows
    )


def device_problems(row: DeviceRow, floor: float) -> Iterator[DeviceProblem]:
    """Return what is wrong with a pair on the device."""
    if row.note:
        yield DeviceProblem(DeviceFault.REPORTED, row.note)
    yield from (DeviceProblem(DeviceFault.CPU_STRAYED, stray) for stray in row.cpu_strays)
    if 0 in (row.dispatches, row.attention, row.writes):
        yield DeviceProblem(DeviceFault.IDLE)
    yield from (DeviceProblem(DeviceFault.STRAYED, stray) for stray in row.strays)
    limit = device_limit(floor)
    if row.pair != F16 and row.kl_same is not None and not row.kl_same.value <= limit:
        yield DeviceProblem(DeviceFault.READS, seen=row.kl_same.value, other=limit)
    yield from _write_problems(row)
    device, cpu = row.kl_f16_device, row.kl_f16_cpu
    if device and cpu and _apart(device, cpu):
        yield DeviceProblem(DeviceFault.FAR_FROM_F16, seen=device.value, other=cpu.value)


def _write_problems(row: DeviceRow) -> Iterator[DeviceProblem]:
    """K and V also by themselves: beside V of 3 bits a wrong K of 8 bits is lost in the mean."""
    errors = [(side.side.upper(), side.cpu, side.device) for side in row.write_errors]
    if row.error_cpu is not None and row.error_device is not None:
        errors.append(("", row.error_cpu, row.error_device))
    for side, cpu, device in errors:
        if not device <= write_limit(cpu):
            yield DeviceProblem(DeviceFault.WRITES, side, device, cpu)


def _apart(one: Interval, other: Interval) -> bool:
    return one.low > other.high or other.low > one.high
