"""Rows selected and ordered, statuses of stages and targets."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_parts import F16, MIXED, Q4_0, Q8_0, TQ3_0, cell, interval, memory_row
from synthetic_report import report
from synthetic_stages import quality_row, speed_stage

from tqforge.core.pair import Pair
from tqforge.report.judge import needles, select
from tqforge.report.judge.needles import Tally
from tqforge.report.judge.select import TargetStatus
from tqforge.report.schema.base import CellOutcome, Check, Interval, StageStatus
from tqforge.report.schema.rows import OpsRow, SpeedRatio, SpeedRow
from tqforge.report.schema.stages import CheckStage, MemoryStage, NeedleStage, OpsStage, QualityStage, Stage

PASSED, FAILED, ERROR, OPEN = StageStatus.PASSED, StageStatus.FAILED, StageStatus.ERROR, StageStatus.INCONCLUSIVE


def check_stage(*statuses: StageStatus) -> CheckStage:
    return CheckStage(name="codec", status=PASSED, checks=tuple(Check(name="c", status=status) for status in statuses))


def ops(passed: int, failed: int = 0) -> OpsStage:
    return OpsStage(status=PASSED, rows=(OpsRow(backend="b", op="o", passed=passed, failed=failed, unsupported=1),))


@pytest.mark.parametrize(
    ("stage", "status"),
    [
        (check_stage(PASSED), PASSED),
        (check_stage(PASSED, FAILED), FAILED),
        (check_stage(PASSED, ERROR), ERROR),
        (check_stage(StageStatus.SKIPPED), OPEN),
        (check_stage(), OPEN),
        (ops(3), PASSED),
        (ops(3, 1), FAILED),
        (ops(0), OPEN),
        (MemoryStage(status=PASSED, rows=(memory_row(TQ3_0),)), PASSED),
        (MemoryStage(status=PASSED, rows=(memory_row(TQ3_0, extra=1),)), FAILED),
        (MemoryStage(status=PASSED), OPEN),
        (NeedleStage(status=PASSED, cells=(cell(TQ3_0, 1, 0, 1, CellOutcome.INCONCLUSIVE),)), OPEN),
        (NeedleStage(status=PASSED, cells=(cell(TQ3_0, 1, 0, 1, CellOutcome.MISS),)), PASSED),
        (NeedleStage(status=FAILED), FAILED),
        (MemoryStage(status=StageStatus.SKIPPED), StageStatus.SKIPPED),
    ],
)
def test_a_status_is_never_better_than_the_rows(stage: Stage, status: StageStatus) -> None:
    assert select.effective(stage) is status


def ratio(low: float, high: float, target: float | None = 0.95, rounds: int = 5) -> SpeedRatio:
    band = Interval(value=(low + high) / 2, low=low, high=high)
    return SpeedRatio(pair=TQ3_0, against=Q4_0, phase="decode", depth=0, ratio=band, rounds=rounds, target=target)


@pytest.mark.parametrize(
    ("one", "status"),
    [
        (ratio(0.95, 1.0), TargetStatus.MET),
        (ratio(0.9499, 1.0), TargetStatus.NOT_DECIDED),
        (ratio(0.9, 0.95), TargetStatus.NOT_DECIDED),
        (ratio(0.9, 0.9499), TargetStatus.MISSED),
        (ratio(1.0, 1.0, rounds=1), TargetStatus.NOT_DECIDED),
        (ratio(1.0, 1.0, rounds=2), TargetStatus.MET),
        (ratio(0.1, 0.1, rounds=1), TargetStatus.NOT_DECIDED),
        (ratio(0.1, 0.1, rounds=2), TargetStatus.MISSED),
        (ratio(1.0, 1.0, target=None), None),
    ],
)
def test_a_target_is_met_or_missed_by_the_whole_interval(one: SpeedRatio, status: TargetStatus | None) -> None:
    assert select.target_status(one) is status


def speed_row(f16: float | None, near: float | None, neighbour: Pair | None = Q4_0) -> SpeedRow:
    values: dict[str, Any] = {
        "ratio_f16": None if f16 is None else interval(f16),
        "ratio_neighbour": None if near is None else interval(near),
        "neighbour": neighbour,
    }
    return SpeedRow(pair=TQ3_0, depth=0, phase="decode", rate=interval(1), rounds=3, **values)


@pytest.mark.parametrize(
    ("row", "others"),
    [
        (speed_row(0.5, 0.5), []),
        (speed_row(0.49, 0.5), [F16]),
        (speed_row(0.5, 0.49), [Q4_0]),
        (speed_row(0.4, 0.4), [F16, Q4_0]),
        (speed_row(None, None, None), []),
        (speed_row(0.4, 0.4, F16), [F16]),
    ],
)
def test_what_a_row_is_far_slower_than(row: SpeedRow, others: list[Pair]) -> None:
    assert select.slower_than(row) == others


def test_pairs_come_as_they_were_asked_for_and_then_by_name() -> None:
    order = select.pair_order(report(pairs=(TQ3_0, F16)))
    assert sorted((Q8_0, F16, Q4_0, TQ3_0), key=order) == [TQ3_0, F16, Q4_0, Q8_0]


def test_quality_rows_come_longest_first_and_floors_before_pairs() -> None:
    rows = tuple(
        quality_row(pair, prefix, is_floor=pair == F16) for prefix in (512, 1536) for pair in (TQ3_0, Q8_0, F16)
    )
    whole = report(stages=(QualityStage(status=PASSED, rows=rows),))
    assert [(row.prefix, row.pair) for row in select.quality_rows(whole)][:3] == [
        (1536, F16),
        (1536, Q8_0),
        (1536, TQ3_0),
    ]
    assert {row.prefix for row in select.main_quality_rows(whole)} == {1536}


def test_the_front_holds_what_no_other_beats() -> None:
    rows = [
        quality_row(TQ3_0, kl=interval(0.3)),
        quality_row(Q4_0, kl=interval(0.1)),
        quality_row("q5_0", kl=interval(0.2)),
        quality_row(MIXED, kl=interval(0.05)),
        quality_row(Q8_0, kl=interval(0.001), unrotated=True),
        quality_row(F16, kl=interval(0.0001), is_floor=True),
    ]
    assert [row.pair for row in select.pareto(rows)] == [TQ3_0, Q4_0, MIXED]


def test_speed_rows_come_by_phase_depth_and_pair() -> None:
    found = select.speed_rows(report(stages=(speed_stage((TQ3_0, F16)),)))
    assert [(row.phase, row.depth) for row in found[::2]] == [
        (phase, depth) for phase in ("prefill", "decode") for depth in (0, 2048, 4096)
    ]
    assert [row.pair for row in found[:2]] == [F16, TQ3_0]


def test_bits_of_a_cache() -> None:
    assert select.measured_bits(memory_row(TQ3_0)) == 3.5
    assert select.measured_bits(memory_row(TQ3_0).model_copy(update={"k_values": 0, "v_values": 0})) is None


def test_cells_are_counted_with_their_mean_score() -> None:
    outcomes = [CellOutcome.HIT, CellOutcome.PARTIAL, CellOutcome.MISS, CellOutcome.ERROR, CellOutcome.INCONCLUSIVE]
    cells = [cell(TQ3_0, 512, 0.5, seed, outcome) for seed, outcome in enumerate(outcomes)]
    found = needles.tally(cells)
    assert found == Tally(1, 1, 1, 1, 1, 0.5)
    assert (found.n, found.total, found.kind) == (3, 5, "judged")
    unscored = [one.model_copy(update={"score": None}) for one in cells[:3]]
    assert needles.tally(unscored).score == 0.5
    assert needles.tally([]) == Tally()


@pytest.mark.parametrize(
    ("tally", "kind"),
    [(Tally(), "empty"), (Tally(errors=1, inconclusive=1), "error"), (Tally(inconclusive=1), "inconclusive")],
)
def test_what_a_place_of_the_map_shows(tally: Tally, kind: str) -> None:
    assert tally.kind == kind


def test_tallies_add_up_with_weighted_scores() -> None:
    both = needles.together([Tally(hits=3, score=1.0), Tally(misses=1, errors=2, score=0.0), Tally()])
    assert both == Tally(hits=3, misses=1, errors=2, score=0.75)
    assert needles.together([]).score is None


def test_maps_come_by_pair_with_the_control_without_a_needle_last() -> None:
    cells = (
        cell(F16, 512, 1.0, 1, CellOutcome.MISS, control="no-needle"),
        cell(TQ3_0, 512, 0.5, 1, CellOutcome.HIT),
        cell(F16, 2048, 0.1, 1, CellOutcome.HIT),
    )
    maps = needles.needle_maps(report(stages=(NeedleStage(status=PASSED, cells=cells, lengths=(4096,)),)))
    assert [(chart.pair, chart.is_reference, chart.must_miss) for chart in maps] == [
        (F16, True, False),
        (TQ3_0, False, False),
        (F16, False, True),
    ]
    assert maps[0].depths == (0.1, 0.5)
    assert [length for length, _ in maps[0].rows] == [512, 2048, 4096]
    assert maps[0].rows[1][1][0].hits == 1
    assert len(maps[2].rows[0][1]) == 1, "without a needle there is no depth"
