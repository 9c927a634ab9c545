from __future__ import annotations

import pytest
from synthetic_parts import cell, interval, summaries
from synthetic_report import not_numbers, report
from synthetic_stages import quality_row

from tqforge.report.judge import pair_levels
from tqforge.report.render.sentences import pairs
from tqforge.report.schema.base import CellOutcome, Interval, PairLevel, StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import QualityRow
from tqforge.report.schema.stages import NeedleStage, QualityStage


def measured(*rows: QualityRow, hits: int = 0, misses: int = 0, pair: str = "tq3_0/tq3_0") -> Report:
    outcomes = [CellOutcome.HIT] * hits + [CellOutcome.MISS] * misses
    cells = [cell(pair, 2048, 0.5, seed, outcome) for seed, outcome in enumerate(outcomes)]
    needle = NeedleStage(status=StageStatus.PASSED, cells=tuple(cells), summaries=summaries(cells))
    return report(stages=(QualityStage(status=StageStatus.PASSED, rows=rows), needle))


def level(whole: Report) -> PairLevel:
    (one,) = pair_levels.judge(whole)
    return PairLevel(one.level)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((0.02, 0.03, 0.04), PairLevel.SAFE),
        ((0.04, 0.048, 0.06), PairLevel.UNDECIDED),
        ((0.2, 0.28, 0.35), PairLevel.LOSSY),
        ((0.4, 0.6, 0.9), PairLevel.LOSSY),
        ((1.5, 2.1, 3.0), PairLevel.UNSAFE),
        ((0.0, float("nan"), 1.0), PairLevel.UNDECIDED),
    ],
)
def test_by_kl(bounds: tuple[float, float, float], expected: PairLevel) -> None:
    low, value, high = bounds
    assert level(measured(quality_row("tq3_0/tq3_0", kl=Interval(value=value, low=low, high=high)))) is expected


@pytest.mark.parametrize(
    ("hits", "misses", "expected"),
    [
        (27, 0, PairLevel.SAFE),
        (26, 1, PairLevel.SAFE),
        (20, 7, PairLevel.LOSSY),
        (6, 21, PairLevel.UNSAFE),
        (1, 2, PairLevel.LOSSY),
        (0, 1, PairLevel.LOSSY),
    ],
)
def test_needles_can_only_make_it_worse(hits: int, misses: int, expected: PairLevel) -> None:
    whole = measured(quality_row("tq3_0/tq3_0", kl=interval(0.01)), hits=hits, misses=misses)
    assert level(whole) is expected


def test_the_worst_prefix_decides() -> None:
    rows = (quality_row("tq3_0/tq3_0", 512, kl=interval(2.0)), quality_row("tq3_0/tq3_0", 4096, kl=interval(0.01)))
    assert level(measured(*rows)) is PairLevel.UNSAFE


def test_the_hard_model_comes_out_as_it_should() -> None:
    """Figures of the kind that a model with large key offsets gives."""
    rows = [
        quality_row("q8_0/q8_0", kl=interval(0.0064)),
        quality_row("q4_0/q4_0", kl=interval(2.06)),
        quality_row("tq3_0/tq3_0", kl=interval(2.12)),
        quality_row("q8_0/tq3_0", kl=interval(0.0307)),
    ]
    whole = measured(*rows)
    text = pairs.levels(pair_levels.judge(whole), pair_levels.reach(whole))
    assert (
        text == "On this model, up to 1,792 tokens, safe: q8_0/tq3_0 and q8_0/q8_0; unsafe: tq3_0/tq3_0 and q4_0/q4_0."
    )


def test_nothing_measured_nothing_said() -> None:
    assert pair_levels.judge(report(stages=())) == []
    assert pair_levels.reach(report(stages=())) == 0
    assert {str(one.pair): one.level for one in pair_levels.judge(not_numbers())}["tq3_0/tq3_0"] is PairLevel.UNDECIDED


def test_a_verdict_holds_the_figures_that_decided() -> None:
    rows = (quality_row("tq3_0/tq3_0", 512, kl=interval(0.02)), quality_row("tq3_0/tq3_0", 1536, kl=interval(0.04)))
    (one,) = pair_levels.judge(measured(*rows, hits=5, misses=1))
    assert (one.kl, one.hits, one.needles, one.bits) == (interval(0.04), 5, 6, 3.5)
    (without,) = pair_levels.judge(measured(*rows))
    assert (without.hits, without.needles) == (0, 0)


def test_needles_do_not_count_for_a_row_that_nobody_runs() -> None:
    row = quality_row("tq3_0/tq3_0", kl=interval(0.01), unrotated=True)
    (one,) = pair_levels.judge(measured(row, misses=27))
    assert (one.level, one.needles, one.unrotated) == (PairLevel.SAFE, 0, True)


def test_verdicts_come_by_size_and_the_floor_has_none() -> None:
    rows = [quality_row(pair, kl=interval(0.01)) for pair in ("q8_0", "tq3_0", "q8_0/tq3_0", "q4_0")]
    floor = quality_row("f16", kl=interval(0.0001), is_floor=True)
    found = [str(one.pair) for one in pair_levels.judge(measured(floor, *rows))]
    assert found == ["tq3_0/tq3_0", "q4_0/q4_0", "q8_0/tq3_0", "q8_0/q8_0"]


def test_a_kl_that_is_not_a_number_is_the_hardest() -> None:
    rows = (quality_row("tq3_0", 512, kl=interval(float("nan"))), quality_row("tq3_0", 1536, kl=interval(0.01)))
    assert level(measured(*rows)) is PairLevel.UNDECIDED


@pytest.mark.parametrize(("hits", "longest"), [(0, 1792), (1, 2048)])
def test_the_reach_is_the_longest_text_that_was_judged(hits: int, longest: int) -> None:
    assert pair_levels.reach(measured(quality_row("tq3_0", 1536), hits=hits)) == longest
