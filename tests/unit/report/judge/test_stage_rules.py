"""What the rows of a stage show, as facts with their values."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_parts import F16, MIXED, Q4_0, Q8_0, TQ3_0, cell, interval, memory_row, summaries
from synthetic_report import report
from synthetic_stages import device_stage, plan_stage, quality_row, speed_stage

from tqforge.core.pair import Pair
from tqforge.report.judge import facts, stages
from tqforge.report.judge.facts import Beside, Fact
from tqforge.report.judge.needles import Tally
from tqforge.report.schema.base import CellOutcome, Check, Interval, StageStatus
from tqforge.report.schema.rows import OpsRow, QualityRow, SpeedRow
from tqforge.report.schema.stages import (
    CheckStage,
    DeviceStage,
    MemoryStage,
    NeedleStage,
    OpsStage,
    QualityStage,
    SpeedStage,
    Stage,
)


def shown(stage: Stage) -> list[tuple[bool, Fact]]:
    return list(stages.show(stage, report(stages=(stage,))))


def of(kind: type[Fact], stage: Stage) -> list[tuple[bool, Any]]:
    return [(good, fact) for good, fact in shown(stage) if isinstance(fact, kind)]


def test_checks_are_counted_and_the_failed_ones_named() -> None:
    good = Check(name="a", status=StageStatus.PASSED, cases=7)
    other, bad = Check(name="b", status=StageStatus.PASSED), Check(name="c", status=StageStatus.ERROR)
    stage = CheckStage(name="codec", checks=(good, other, bad))
    assert shown(stage) == [(False, facts.CheckOpen(bad)), (True, facts.ChecksPassed(2, 3, 7))]
    assert shown(CheckStage(name="codec")) == []


def test_ops_are_counted_per_backend() -> None:
    rows = (
        OpsRow(backend="CPU", op="CPY", passed=5, failed=0, unsupported=1),
        OpsRow(backend="CPU", op="SET_ROWS", passed=2, failed=1, unsupported=0),
        OpsRow(backend="Metal", op="CPY", passed=4, failed=0, unsupported=2),
        OpsRow(backend="Other", op="CPY", passed=0, failed=0, unsupported=2),
    )
    assert shown(OpsStage(rows=rows)) == [
        (False, facts.OpsCounted("CPU", 7, 1, 1, ("SET_ROWS",))),
        (True, facts.OpsCounted("Metal", 4, 0, 2, ())),
        (False, facts.OpsCounted("Other", 0, 0, 2, ())),
    ]


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"kl_same": interval(1.5e-3)}, True),
        ({"kl_same": Interval(value=1.51e-3, low=0, high=1)}, False),
        ({"kl_same": Interval(value=float("nan"), low=0, high=1)}, False),
        ({"kl_same": None}, True),
        ({"strays": ("x",)}, False),
        ({"dispatches": 0}, False),
        ({"dispatches": None}, True),
    ],
)
def test_a_device_row_is_good_within_its_limit(changes: dict[str, Any], good: bool) -> None:
    stage = device_stage()
    row = stage.rows[1].model_copy(update=changes)
    assert shown(DeviceStage(rows=(row,), device="Metal", floor=1e-5)) == [
        (good, facts.DeviceCompared(row, "Metal", 1e-5))
    ]


def test_memory_shows_our_pairs_at_the_longest_context() -> None:
    rows = [memory_row(pair, n_ctx) for n_ctx in (1024, 4096) for pair in (F16, Q8_0, TQ3_0, MIXED)]
    found = shown(MemoryStage(rows=tuple(rows)))
    assert [good for good, _ in found] == [True] * 3
    plain, mixed, rest = (fact for _, fact in found)
    assert isinstance(plain, facts.BytesPerValue)
    assert (plain.size.pair, plain.size.bits, 32 * plain.bytes / plain.values) == (TQ3_0, 3.5, 14)
    assert plain.size.smaller == pytest.approx(16 / 3.5)
    assert isinstance(mixed, facts.SizesExact)
    assert [(size.pair, size.bits) for size in mixed.sizes] == [(MIXED, 6.0)]
    assert rest == facts.OtherSizesExact(6)


def test_memory_that_is_off_is_no_exact_size() -> None:
    row = memory_row(TQ3_0, extra=32)
    assert shown(MemoryStage(rows=(row,))) == [(False, facts.MemoryOff(row))]
    alone = of(facts.BytesPerValue, MemoryStage(rows=(memory_row(TQ3_0),)))
    assert alone[0][1].size.smaller is None, "f16 was not measured"


def needle(pair: Pair, *outcomes: CellOutcome, **more: Any) -> NeedleStage:
    cells = [cell(pair, 512, 0.5, seed, outcome, **more) for seed, outcome in enumerate(outcomes)]
    return NeedleStage(cells=tuple(cells), summaries=summaries(cells))


HIT, MISS, ERROR, OPEN = CellOutcome.HIT, CellOutcome.MISS, CellOutcome.ERROR, CellOutcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("outcomes", "good"),
    [((HIT, HIT), True), ((HIT, MISS), False), ((HIT, ERROR), False), ((OPEN,), False), ((HIT, OPEN), True)],
)
def test_all_needles_must_be_found(outcomes: tuple[CellOutcome, ...], good: bool) -> None:
    ((seen, fact),) = of(facts.NeedlesFound, needle(TQ3_0, *outcomes))
    assert (seen, fact.pair, fact.tally.hits) == (good, TQ3_0, outcomes.count(HIT))
    assert (fact.rate is None) == (fact.tally.n == 0)


def test_a_summary_of_other_cells_gives_no_interval() -> None:
    stage = needle(TQ3_0, HIT, HIT, HIT)
    ((_, fact),) = of(facts.NeedlesFound, stage.model_copy(update={"cells": stage.cells[:2]}))
    assert fact.rate is None


@pytest.mark.parametrize(("outcomes", "good"), [((HIT, MISS), True), ((MISS,), False), ((HIT, ERROR), False)])
def test_what_f16_misses_is_no_fault_unless_it_finds_nothing(outcomes: tuple[CellOutcome, ...], good: bool) -> None:
    ((seen, fact),) = of(facts.ReferenceNeedles, needle(F16, *outcomes))
    assert (seen, fact.tally.hits) == (good, outcomes.count(HIT))


@pytest.mark.parametrize(("outcome", "good"), [(HIT, False), (CellOutcome.PARTIAL, False), (MISS, True), (ERROR, None)])
def test_without_a_needle_nothing_may_be_found(outcome: CellOutcome, good: bool | None) -> None:
    found = of(facts.NoNeedle, needle(F16, outcome, control="no-needle"))
    assert [seen for seen, _ in found] == ([] if good is None else [good])


def test_stock_pairs_are_counted_together() -> None:
    cells = (*needle(Q8_0, HIT, HIT).cells, *needle(Q4_0, HIT, MISS).cells)
    ((good, fact),) = shown(NeedleStage(cells=cells))
    assert not good
    assert isinstance(fact, facts.StockNeedles)
    assert [(pair, tally.hits, tally.n) for pair, tally in fact.found] == [(Q8_0, 2, 2), (Q4_0, 1, 2)]
    assert isinstance(fact.found[0][1], Tally)


def quality(*rows: QualityRow) -> QualityStage:
    return QualityStage(rows=rows)


def kl(value: float, spread: float = 0.0) -> Interval:
    return Interval(value=value, low=value - spread, high=value + spread)


@pytest.mark.parametrize(
    ("value", "other", "beside"),
    [
        (kl(0.20), kl(0.10), Beside.HIGHER),
        (kl(0.10), kl(0.20), Beside.LOWER),
        (kl(0.20, 0.05), kl(0.10, 0.05), Beside.SAME),
        (kl(0.20, 0.0499), kl(0.10, 0.0499), Beside.HIGHER),
    ],
)
def test_a_pair_is_compared_with_the_next_larger_stock_pair(value: Interval, other: Interval, beside: Beside) -> None:
    ours, stock, larger = quality_row(TQ3_0, kl=value), quality_row(Q4_0, kl=other), quality_row(Q8_0, kl=kl(0.001))
    ((good, fact),) = shown(quality(larger, stock, ours))
    assert not good
    assert fact == facts.Distance(ours, stock, beside)


@pytest.mark.parametrize(("value", "good"), [(0.0499, True), (0.05, False), (float("nan"), False)])
def test_a_distance_is_good_below_the_bound(value: float, good: bool) -> None:
    row = quality_row(TQ3_0, kl=kl(value))
    ((seen, fact),) = shown(quality(row))
    assert (seen, fact.row.pair, fact.larger) == (good, TQ3_0, None)  # type: ignore[attr-defined]


def test_a_stock_pair_is_shown_only_if_it_breaks_the_model() -> None:
    assert shown(quality(quality_row(Q4_0, kl=kl(0.4999)))) == []
    broken = quality_row(Q4_0, kl=kl(0.5))
    assert shown(quality(broken)) == [(False, facts.Distance(broken))]
    assert shown(quality(quality_row(Q4_0, kl=kl(2), unrotated=True), quality_row(F16, kl=kl(2), is_floor=True))) == []


def test_a_stock_pair_at_zero_or_without_a_number_is_no_comparison() -> None:
    ours = quality_row(TQ3_0, kl=kl(0.1))
    for value in (0.0, float("inf")):
        found = [fact for _, fact in shown(quality(ours, quality_row(Q4_0, kl=kl(value)))) if fact.row is ours]  # type: ignore[attr-defined]
        assert [fact.larger for fact in found] == [None]  # type: ignore[attr-defined]


def test_better_keys_need_intervals_that_do_not_touch() -> None:
    cheap = quality_row(TQ3_0, kl=kl(0.3, 0.1))
    for value, spread, pays in ((0.1, 0.09, True), (0.15, 0.05, False), (0.15, 0.0499, True)):
        dear = quality_row(MIXED, kl=kl(value, spread))
        found = list(stages.better_keys(report(stages=(quality(cheap, dear),))))
        assert found == ([facts.BetterKeys(dear, cheap)] if pays else [])


def test_better_keys_prefer_the_cheapest_close_pair_else_the_closest() -> None:
    cheap = quality_row(TQ3_0, kl=kl(0.9))
    pairs = {"q5_0/tq3_0": 0.04, "q8_0/tq3_0": 0.02, "f16/tq3_0": 0.01}
    rows = [quality_row(pair, kl=kl(value)) for pair, value in pairs.items()]
    (best,) = stages.better_keys(report(stages=(quality(cheap, *rows),)))
    assert best.dear is rows[0]
    far = [row.model_copy(update={"kl": kl(row.kl.value + 0.1)}) for row in rows]
    (best,) = stages.better_keys(report(stages=(quality(cheap, *far),)))
    assert best.dear is far[2]


def test_a_larger_value_type_is_not_about_keys() -> None:
    cheap, other = quality_row(TQ3_0, kl=kl(0.3)), quality_row("tq3_0/q8_0", kl=kl(0.01))
    assert list(stages.better_keys(report(stages=(quality(cheap, other),)))) == []


def speed_row(share: float | None, pair: Pair = TQ3_0, **more: Any) -> SpeedRow:
    ratio = None if share is None else interval(share)
    values = {"depth": 0, "phase": "decode", "rate": interval(9.0), "ratio_f16": ratio, "rounds": 3}
    return SpeedRow(pair=pair, **{**values, **more})


def test_slow_places_are_collected_per_reference() -> None:
    rows = (
        speed_row(0.4),
        speed_row(0.3, depth=64, neighbour=Q4_0, ratio_neighbour=interval(0.2)),
        speed_row(0.5, phase="prefill"),
    )
    found = of(facts.Slow, SpeedStage(rows=rows))
    assert found == [
        (False, facts.Slow(TQ3_0, F16, 0.3, 0.4, (("decode", 0), ("decode", 64)))),
        (False, facts.Slow(TQ3_0, Q4_0, 0.2, 0.2, (("decode", 64),))),
    ]


def test_shares_are_shown_when_none_of_them_is_slow() -> None:
    fast = (speed_row(0.8), speed_row(0.6, depth=64), speed_row(0.9, phase="prefill"))
    ((good, fact),) = of(facts.RateShares, SpeedStage(rows=fast))
    assert good
    assert fact == facts.RateShares(TQ3_0, (("prefill", 0.9, 0.9), ("decode", 0.6, 0.8)))
    assert of(facts.RateShares, SpeedStage(rows=(*fast, speed_row(0.49)))) == []
    assert of(facts.RateShares, SpeedStage(rows=(speed_row(0.8, Q8_0),))) == []
    assert shown(SpeedStage(rows=(speed_row(None), speed_row(1.0, F16)))) == []


def test_targets_are_told_with_the_noise_of_the_machine() -> None:
    stage = speed_stage()
    states = [(good, fact.ratio.phase, fact.noisy) for good, fact in of(facts.TargetChecked, stage)]
    assert states == [(True, "decode", False), (False, "prefill", False), (False, "prefill", False)]
    loud = stage.model_copy(update={"busy": 0.5})
    assert all(fact.noisy for _, fact in of(facts.TargetChecked, loud))


def test_a_plan_has_only_recommendations_and_an_unknown_stage_no_rule() -> None:
    assert shown(plan_stage()) == []
    unknown: Any = object()
    with pytest.raises(TypeError, match="no rule for object"):
        stages.show(unknown, report())
