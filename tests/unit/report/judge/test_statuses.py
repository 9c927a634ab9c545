"""The status of every stage from its rows, with the reasons as values."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_parts import F16, MIXED, Q4_0, Q8_0, TQ3_0, cell, interval, memory_row, summaries
from synthetic_stages import device_stage, quality_row, speed_stage

from tqforge.core.pair import Pair
from tqforge.report.judge import facts, reasons, statuses
from tqforge.report.judge.reasons import DeviceFault, DeviceProblem, Missing
from tqforge.report.judge.statuses import NOTHING, PASSED, Verdict
from tqforge.report.schema.base import CellOutcome, Check, Interval, StageStatus
from tqforge.report.schema.rows import DeviceRow, MemoryNeed, OpsRow, PlanRow, SpeedRow, WriteError
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

MIB = 1 << 20


def failed(*why: facts.Fact) -> Verdict:
    return Verdict(StageStatus.FAILED, why)


def check(status: StageStatus, name: str = "c") -> Check:
    return Check(name=name, status=status)


def checks(*status: StageStatus) -> CheckStage:
    return CheckStage(name="codec", checks=tuple(map(check, status)))


GOOD, BAD, ERROR, SKIP = StageStatus.PASSED, StageStatus.FAILED, StageStatus.ERROR, StageStatus.SKIPPED


def test_one_failed_check_fails_the_stage() -> None:
    assert statuses.checks(checks(GOOD, GOOD)) == PASSED
    assert statuses.checks(checks(GOOD, SKIP)) == PASSED
    assert statuses.checks(checks(GOOD, BAD, SKIP)) == failed(reasons.ChecksFailed((check(BAD),)))
    assert statuses.checks(checks(GOOD, ERROR)) == failed(reasons.ChecksFailed((check(ERROR),)))
    assert statuses.checks(checks()) == NOTHING


def test_a_stage_that_needs_all_checks_is_skipped_with_one_of_them() -> None:
    assert statuses.all_checks(checks(GOOD, GOOD)) == PASSED
    skipped = statuses.all_checks(checks(GOOD, SKIP))
    assert skipped == Verdict(StageStatus.SKIPPED, (reasons.ChecksFailed((check(SKIP),)),))
    assert statuses.all_checks(checks(BAD, SKIP)).status is StageStatus.FAILED
    assert statuses.all_checks(checks()) == NOTHING


def ops_row(**changes: Any) -> OpsRow:
    return OpsRow(**{"backend": "CPU", "op": "CPY", "passed": 3, "failed": 0, "unsupported": 1, **changes})


@pytest.mark.parametrize("changes", [{"failed": 1}, {"passed": 0}, {"note": "SIGSEGV"}])
def test_one_bad_run_of_ops_fails_the_stage(changes: dict[str, Any]) -> None:
    bad = ops_row(**changes)
    assert not statuses.is_good(bad)
    assert statuses.ops(OpsStage(rows=(ops_row(), bad))) == failed(reasons.OpsFailed((bad,)))
    assert statuses.ops(OpsStage(rows=(bad,), no_device="no clang")).status is StageStatus.FAILED


def test_ops_without_a_device_are_skipped_and_without_rows_inconclusive() -> None:
    assert statuses.ops(OpsStage(rows=(ops_row(),))) == PASSED
    without = statuses.ops(OpsStage(rows=(ops_row(),), no_device="no clang"))
    assert without == Verdict(StageStatus.SKIPPED, (reasons.NoDevice("no clang"),))
    assert statuses.ops(OpsStage(no_device="no clang")) == NOTHING


def test_memory_must_fit_to_the_byte() -> None:
    good, high, low = memory_row(TQ3_0), memory_row(TQ3_0, extra=1), memory_row(TQ3_0, extra=-1)
    assert statuses.memory(MemoryStage(rows=(good,))) == PASSED
    found = statuses.memory(MemoryStage(rows=(good, high, low)))
    assert found == failed(facts.MemoryOff(high), facts.MemoryOff(low))
    empty = good.model_copy(update={"k_values": 0})
    assert statuses.memory(MemoryStage(rows=(empty,))).status is StageStatus.FAILED
    assert statuses.memory(MemoryStage()) == failed(reasons.NothingMeasured())


def plan_row(gap: int | None, swa: int = 0) -> PlanRow:
    planned = MemoryNeed(weights=1, kv=100 * MIB, kv_swa=MIB, compute=1)
    if gap is None:
        return PlanRow(pair=F16, n_ctx=1, planned=planned)
    measured = planned.model_copy(update={"kv": planned.kv + gap, "kv_swa": planned.kv_swa + swa})
    return PlanRow(pair=F16, n_ctx=1, planned=planned, measured=measured)


@pytest.mark.parametrize(("gap", "by"), [(None, 0), (0, 0), (20_971, 0), (-20_971, 0), (20_972, 20_972), (-MIB, MIB)])
def test_a_plan_may_be_off_by_the_rounding_of_the_log(gap: int | None, by: int) -> None:
    row = plan_row(gap)
    assert statuses.off(row) == by
    assert statuses.plan(PlanStage(rows=(row,))) == (failed(reasons.PlanOff(row, by)) if by else PASSED)


def test_both_kinds_of_cache_count_in_a_plan() -> None:
    assert statuses.off(plan_row(MIB, swa=-MIB)) == 0
    assert statuses.off(plan_row(0, swa=MIB)) == MIB


def needles(*outcomes: CellOutcome, pair: Pair = TQ3_0, **more: Any) -> NeedleStage:
    cells = [cell(pair, 512, 0.5, seed, outcome, **more) for seed, outcome in enumerate(outcomes)]
    return NeedleStage(cells=tuple(cells), summaries=summaries(cells))


HIT, MISS = CellOutcome.HIT, CellOutcome.MISS


def test_lost_needles_fail_only_below_half() -> None:
    assert statuses.needle(needles(*[HIT] * 4)) == PASSED
    assert statuses.needle(needles(*[MISS] * 3)) == PASSED, "three misses may be chance"
    lost = needles(*[MISS] * 4)
    assert statuses.needle(lost) == failed(reasons.NeedlesLost(lost.summaries[0]))


def test_an_error_or_a_guess_fails_the_needles() -> None:
    assert statuses.needle(needles(HIT, CellOutcome.ERROR)) == failed(reasons.NeedleErrors((TQ3_0,)))
    guess = cell(F16, 512, 1.0, 0, CellOutcome.PARTIAL, control="no-needle")
    silent = cell(F16, 512, 1.0, 0, CellOutcome.MISS, control="no-needle")
    stage = needles(HIT)
    guessed = stage.model_copy(update={"cells": (*stage.cells, guess)})
    assert statuses.needle(guessed) == failed(reasons.NeedlesGuessed(1))
    assert statuses.needle(stage.model_copy(update={"cells": (*stage.cells, silent)})) == PASSED


def test_needles_that_f16_does_not_find_decide_nothing() -> None:
    nothing = Verdict(StageStatus.INCONCLUSIVE, (reasons.ReferenceFindsNothing(),))
    assert statuses.needle(NeedleStage()) == nothing
    assert statuses.needle(needles(CellOutcome.INCONCLUSIVE)) == nothing
    assert statuses.needle(needles(HIT, pair=F16)) == PASSED, "f16 alone was asked"


def bounds(low: float, high: float) -> Interval:
    return Interval(value=(low + high) / 2, low=low, high=high)


def test_a_pair_that_breaks_the_model_fails_the_quality() -> None:
    good, bad = quality_row(Q8_0), quality_row(TQ3_0, kl=bounds(0.5, 2.0))
    assert statuses.quality(QualityStage(rows=(good,))) == PASSED
    assert statuses.quality(QualityStage(rows=(quality_row(TQ3_0, kl=bounds(0.4999, 2.0)),))) == PASSED
    assert statuses.quality(QualityStage(rows=(good, bad))) == failed(reasons.ModelBroken((bad,)))
    assert statuses.quality(QualityStage()) == NOTHING


@pytest.mark.parametrize("what", ["unrotated", "is_floor"])
def test_rows_that_nobody_runs_break_nothing(what: str) -> None:
    row = quality_row(Q4_0, kl=bounds(2.0, 3.0), **{what: True})
    assert statuses.quality(QualityStage(rows=(row,))) == PASSED


def test_a_pair_that_breaks_at_several_lengths_is_named_once() -> None:
    rows = tuple(quality_row(TQ3_0, prefix, kl=bounds(2, 3)) for prefix in (512, 1536))
    assert statuses.quality(QualityStage(rows=rows)) == failed(reasons.ModelBroken((rows[1],)))


def speed_row(pair: Pair, share: float | None, **more: Any) -> SpeedRow:
    ratio = None if share is None else interval(share)
    values = {"depth": 0, "phase": "decode", "rate": interval(9.0), "ratio_f16": ratio, "rounds": 3}
    return SpeedRow(pair=pair, **{**values, **more})


def test_less_than_half_of_a_rate_is_a_suspected_fallback() -> None:
    edge, slow = speed_row(TQ3_0, 0.5), speed_row(TQ3_0, 0.4999)
    assert statuses.speed(SpeedStage(rows=(edge,))) == PASSED
    assert statuses.speed(SpeedStage(rows=(edge, slow))) == failed(reasons.FallbackSuspected((slow,), noisy=False))
    assert statuses.speed(SpeedStage(rows=(speed_row(Q4_0, 0.1),))) == PASSED, "a stock pair is not ours to fail"
    assert statuses.speed(SpeedStage(rows=(speed_row(TQ3_0, None),))) == PASSED
    assert statuses.speed(SpeedStage()) == NOTHING
    near = speed_row(MIXED, 0.9, neighbour=Q8_0, ratio_neighbour=interval(0.4))
    assert statuses.speed(SpeedStage(rows=(near,))).status is StageStatus.FAILED


@pytest.mark.parametrize("loud", [{"spread": 0.2}, {"busy": 0.5}])
def test_on_a_noisy_machine_a_slow_rate_is_no_failure(loud: dict[str, Any]) -> None:
    slow = speed_row(TQ3_0, 0.3)
    found = statuses.speed(SpeedStage(rows=(slow,), **loud))
    assert found == Verdict(StageStatus.INCONCLUSIVE, (reasons.FallbackSuspected((slow,), noisy=True),))
    assert statuses.speed(speed_stage()).status is StageStatus.FAILED


def device_row(pair: Pair = TQ3_0, **changes: Any) -> DeviceRow:
    values = {"kl": interval(1e-3), "kl_max": 1e-3, "kl_same": Interval(value=1e-3, low=1e-3, high=1e-3)}
    ran = {"tokens": 55, "top1": 1.0, "dispatches": 10, "attention": 3, "writes": 6}
    return DeviceRow(pair=pair, **{**values, **ran, "error_cpu": 0.02, "error_device": 0.02, **changes})


FLOOR = device_row(F16, kl_same=Interval(value=1e-4, low=1e-4, high=1e-4))


def same(value: float) -> Interval:
    return Interval(value=value, low=value, high=value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kl_same": same(1.2e-3)}, None),
        ({"kl_same": same(1.3e-3)}, DeviceProblem(DeviceFault.READS, seen=1.3e-3, other=1.2e-3)),
        ({"error_device": 0.0221}, None),
        ({"error_device": 0.0222}, DeviceProblem(DeviceFault.WRITES, "", 0.0222, 0.02)),
        ({"dispatches": 0}, DeviceProblem(DeviceFault.IDLE)),
        ({"attention": 0}, DeviceProblem(DeviceFault.IDLE)),
        ({"writes": 0}, DeviceProblem(DeviceFault.IDLE)),
        ({"dispatches": None, "attention": None, "writes": None}, None),
        ({"strays": ("a on CPU",)}, DeviceProblem(DeviceFault.STRAYED, "a on CPU")),
        ({"cpu_strays": ("a on MTL0",)}, DeviceProblem(DeviceFault.CPU_STRAYED, "a on MTL0")),
        ({"note": "race in k"}, DeviceProblem(DeviceFault.REPORTED, "race in k")),
        ({"write_errors": (WriteError(side="k", cpu=3e-5, device=1.3e-4),)}, None),
        (
            {"write_errors": (WriteError(side="k", cpu=3e-5, device=1.4e-4),)},
            DeviceProblem(DeviceFault.WRITES, "K", 1.4e-4, 3e-5),
        ),
        ({"kl_f16_device": bounds(0.1, 0.3), "kl_f16_cpu": bounds(0.3, 0.5)}, None),
        (
            {"kl_f16_device": same(0.5), "kl_f16_cpu": bounds(0.1, 0.3)},
            DeviceProblem(DeviceFault.FAR_FROM_F16, seen=0.5, other=0.2),
        ),
    ],
)
def test_every_way_a_device_fails(changes: dict[str, Any], problem: DeviceProblem | None) -> None:
    row = device_row(**changes)
    found = list(statuses.device_problems(row, 1e-4))
    verdict = statuses.device(DeviceStage(rows=(FLOOR, row)))
    if problem is None:
        assert (found, verdict) == ([], PASSED)
    else:
        (fact,) = verdict.reasons
        assert isinstance(fact, reasons.DeviceFailed)
        assert (verdict.status, fact.pair) == (StageStatus.FAILED, TQ3_0)
        assert [one.fault for one in fact.problems] == [problem.fault]
        assert fact.problems[0].seen == pytest.approx(problem.seen)
        assert fact.problems[0].other == pytest.approx(problem.other)


@pytest.mark.parametrize("field", ["kl_same", "error_device", "error_cpu"])
def test_figures_that_are_not_numbers_never_pass(field: str) -> None:
    changes: dict[str, Any] = {field: same(float("nan")) if field == "kl_same" else float("nan")}
    row = device_row(**changes)
    assert statuses.device(DeviceStage(rows=(FLOOR, row))).status is StageStatus.FAILED


def test_f16_has_no_limit_on_the_device() -> None:
    far = device_row(F16, kl_same=same(0.3))
    assert statuses.device(DeviceStage(rows=(far, device_row()))) == PASSED
    assert [row.limit for row in statuses.with_limits((FLOOR, device_row()))] == [None, pytest.approx(1.2e-3)]


def test_the_floor_is_taken_from_the_same_rows_where_they_were_compared() -> None:
    assert statuses.device_floor(FLOOR) == 1e-4
    assert statuses.device_floor(device_row(F16, kl=same(0.7), kl_same=None)) == 0.7


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        ((), reasons.DeviceOpen(Missing.FLOOR)),
        ((device_row(),), reasons.DeviceOpen(Missing.FLOOR)),
        ((FLOOR,), reasons.DeviceOpen(Missing.PAIRS)),
        ((FLOOR, device_row(kl_same=None)), reasons.DeviceOpen(Missing.SAME_ROWS, (TQ3_0,))),
        ((FLOOR, device_row(error_device=None)), reasons.DeviceOpen(Missing.SAME_ROWS, (TQ3_0,))),
    ],
)
def test_what_a_device_lacks(rows: tuple[DeviceRow, ...], fact: facts.Fact) -> None:
    assert statuses.device(DeviceStage(rows=rows)) == Verdict(StageStatus.INCONCLUSIVE, (fact,))


def test_the_synthetic_device_passes() -> None:
    assert statuses.device(device_stage()) == PASSED
