from __future__ import annotations

import pytest

from tqforge.core.pair import Pair
from tqforge.report.judge import statuses
from tqforge.report.schema.base import CellOutcome, StageStatus
from tqforge.report.schema.rows import NeedleCell
from tqforge.report.schema.stages import NeedleStage
from tqforge.verify.stages.needle import scoring
from tqforge.verify.stages.needle.facts import PUBLISHED, fact

FACTS = ("FROSTBLOCK-7", "VcMYB4")


@pytest.mark.parametrize(
    ("answer", "score", "exact"),
    [
        ("The vault is FROSTBLOCK-7 and the code is VcMYB4.", 1.0, True),
        ("frostblock-7, VCMYB4", 1.0, False),
        ("FROSTBLOCK-7", 0.5, False),
        ("VcMYB42 and FROSTBLOCK-77", 0.0, False),
        ("FROSTBLOCK 7 / VcMYB-4", 0.0, False),
        ("**FROSTBLOCK-7**: `VcMYB4`", 1.0, True),
        ("", 0.0, False),
    ],
)
def test_scores(answer: str, score: float, exact: bool) -> None:
    result = scoring.score(answer, FACTS)
    assert (result.score, result.exact) == (score, exact)


def test_near_misses_show_what_was_almost_right() -> None:
    (miss,) = scoring.score("The vault FROSTBLOCK-7 opens with VcMYB9.", FACTS).near_misses
    assert (miss.expected, miss.seen, miss.distance) == ("VcMYB4", "VcMYB9", 1)
    assert scoring.score("I do not know.", FACTS).near_misses == ()


def test_facts_are_drawn_the_same_everywhere_and_look_alike() -> None:
    assert fact(0) == PUBLISHED
    drawn = [fact(seed) for seed in range(1, 40)]
    assert [fact(seed) for seed in range(1, 40)] == drawn
    assert len({one.code for one in drawn}) == len(drawn)
    assert all(one.name.rpartition("-")[0].isupper() and len(one.code) == 6 for one in drawn)
    assert fact(1).name == fact(1).sentence.split(" called ")[1].split()[0]


def cell(
    pair: str, control: str, score: float | None, *, seed: int = 0, outcome: CellOutcome | None = None
) -> NeedleCell:
    table = {1.0: CellOutcome.HIT, 0.5: CellOutcome.PARTIAL, 0.0: CellOutcome.MISS}
    return NeedleCell(
        pair=Pair.parse(pair),
        control=control,  # type: ignore[arg-type]
        facts=FACTS,
        fact_kind="drawn",
        length=512,
        tokens=512,
        depth=0.5,
        seed=seed,
        outcome=outcome or (CellOutcome.ERROR if score is None else table[score]),
        score=score,
        exact=None,
    )


def test_a_failed_control_makes_its_cells_inconclusive_but_not_its_errors() -> None:
    cells = scoring.judge(
        [
            cell("f16/f16", "f16", 0.5, seed=1),
            cell("f16/f16", "f16", 1.0, seed=2),
            cell("q4_0/q4_0", "none", 0.0, seed=1),
            cell("q4_0/q4_0", "none", 0.0, seed=2),
            cell("tq3_0/tq3_0", "none", None, seed=1),
        ]
    )
    assert [one.outcome for one in cells[2:]] == [CellOutcome.INCONCLUSIVE, CellOutcome.MISS, CellOutcome.ERROR]


def test_summaries_count_errors_and_open_cells_apart() -> None:
    cells = [
        cell("q/q", "none", 1.0),
        cell("q/q", "none", 0.5),
        cell("q/q", "none", None),
        cell("q/q", "none", 0.0, outcome=CellOutcome.INCONCLUSIVE),
        cell("q/q", "no-needle", 0.0),
    ]
    row = scoring.summarize(cells, [Pair.both("q")])[0]
    assert (row.n, row.hits, row.partial, row.misses, row.errors, row.inconclusive) == (2, 1, 1, 0, 1, 1)
    assert row.mean_score == 0.75
    empty = scoring.summarize([], [Pair.both("q")])[0]
    assert (empty.n, empty.mean_score, empty.rate) == (0, None, None)


def verdict(*cells: NeedleCell) -> StageStatus:
    summaries = scoring.summarize(cells, dict.fromkeys(cell.pair for cell in cells))
    return statuses.needle(NeedleStage(cells=cells, summaries=summaries)).status


def test_verdicts_on_scored_cells() -> None:
    control = cell("f16/f16", "f16", 1.0)
    assert verdict(control, cell("q/q", "none", 1.0)) is StageStatus.PASSED
    assert verdict(control, *[cell("q/q", "none", 0.0)] * 2) is StageStatus.PASSED
    assert verdict(control, *[cell("q/q", "none", 0.0)] * 4) is StageStatus.FAILED
    assert verdict(control, cell("q/q", "none", None)) is StageStatus.FAILED
    assert verdict(control, cell("f16/f16", "no-needle", 0.5)) is StageStatus.FAILED
    open_cell = cell("q/q", "none", 0.0, outcome=CellOutcome.INCONCLUSIVE)
    assert verdict(cell("f16/f16", "f16", 0.0), open_cell) is StageStatus.INCONCLUSIVE
    assert verdict() is StageStatus.INCONCLUSIVE
