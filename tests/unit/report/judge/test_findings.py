"""Findings by kind, and the result of a whole run: the worst stage decides, and nothing hides it."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_parts import TQ3_0, cell, memory_row, summaries
from synthetic_report import EDGES, report
from synthetic_stages import quality_row

from tqforge.report.judge import facts
from tqforge.report.judge.findings import Kind, Overall, Tone, findings, lossy_stages, summary
from tqforge.report.schema.base import CellOutcome, Check, ErrorRecord, StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import CheckStage, MemoryStage, NeedleStage, QualityStage, Stage

PASSED, FAILED, ERROR = StageStatus.PASSED, StageStatus.FAILED, StageStatus.ERROR
SKIPPED, OPEN = StageStatus.SKIPPED, StageStatus.INCONCLUSIVE


def check_stage(status: StageStatus, name: str = "codec", **more: Any) -> CheckStage:
    return CheckStage(name=name, status=status, checks=(Check(name="c", status=PASSED),), **more)


def lossy() -> NeedleStage:
    cells = [cell(TQ3_0, 512, 0.5, seed, CellOutcome.MISS) for seed in range(2)]
    return NeedleStage(status=PASSED, cells=tuple(cells), summaries=summaries(cells))


def run(*stages: Stage, **more: Any) -> Report:
    return report(stages=stages, **more)


@pytest.mark.parametrize(
    ("stages", "more", "overall"),
    [
        ((check_stage(PASSED),), {}, Overall.PASSED),
        ((check_stage(PASSED), check_stage(SKIPPED, "ops")), {}, Overall.PARTLY_PASSED),
        ((check_stage(PASSED), check_stage(OPEN, "ops")), {}, Overall.PARTLY_PASSED),
        ((check_stage(PASSED), lossy()), {}, Overall.LOSSES),
        ((check_stage(SKIPPED),), {}, Overall.NO_RESULTS),
        ((), {}, Overall.NO_RESULTS),
        ((check_stage(PASSED),), {"asked": ("codec", "needle")}, Overall.UNFINISHED),
        ((check_stage(PASSED), check_stage(FAILED, "source")), {"asked": ("speed",)}, Overall.FAILED),
        ((check_stage(FAILED), check_stage(ERROR, "source")), {}, Overall.ERROR),
        ((check_stage(PASSED),), {"status": FAILED}, Overall.FAILED),
        ((check_stage(PASSED),), {"status": ERROR}, Overall.ERROR),
        ((MemoryStage(status=PASSED, rows=(memory_row(TQ3_0, extra=1),)),), {}, Overall.FAILED),
        ((MemoryStage(status=PASSED),), {}, Overall.NO_RESULTS),
    ],
)
def test_the_worst_stage_decides(stages: tuple[Stage, ...], more: dict[str, Any], overall: Overall) -> None:
    assert summary(run(*stages, **more)).overall is overall


def test_every_result_has_a_tone() -> None:
    assert {overall.tone for overall in Overall} == set(Tone)
    assert [overall for overall in Overall if overall.tone is Tone.GOOD] == [Overall.PASSED]
    assert [overall for overall in Overall if overall.tone is Tone.BAD] == [Overall.ERROR, Overall.FAILED]


def test_stages_are_told_by_what_became_of_them() -> None:
    whole = run(check_stage(PASSED), lossy(), check_stage(SKIPPED, "ops"), asked=("codec", "needle", "ops", "speed"))
    found = summary(whole)
    assert (found.by_status[PASSED], found.losses, found.unreached) == (["codec"], ["needle"], ["speed"])
    assert found.by_status[SKIPPED] == ["ops"]
    assert lossy_stages(whole) == {"needle", ""}


def kinds(whole: Report) -> list[tuple[Kind, str, str]]:
    return [(one.kind, one.stage, type(one.fact).__name__) for one in findings(whole)]


def test_findings_come_in_the_order_of_reading() -> None:
    for name in EDGES:
        found = [list(Kind).index(one.kind) for one in findings(EDGES[name]())]
        assert found == sorted(found), name


@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (check_stage(ERROR, error=ErrorRecord(kind="x", code=1, what="w")), Kind.PROBLEM),
        (check_stage(FAILED, reason="why"), Kind.PROBLEM),
        (check_stage(FAILED, remedy="how"), Kind.PROBLEM),
        (check_stage(FAILED), None),
        (check_stage(SKIPPED), Kind.SKIPPED),
        (check_stage(OPEN), Kind.PROBLEM),
        (check_stage(PASSED), None),
    ],
)
def test_how_a_stage_ended_is_a_finding_unless_its_rows_say_it(stage: Stage, kind: Kind | None) -> None:
    found = [one for one in findings(run(stage)) if isinstance(one.fact, facts.StageEnded)]
    assert [one.kind for one in found] == ([] if kind is None else [kind])


def test_open_checks_are_findings_of_their_own() -> None:
    checks = tuple(Check(name=status, status=status) for status in StageStatus)
    found = [
        (one.kind, one.fact.check.name)
        for one in findings(run(CheckStage(name="codec", status=FAILED, checks=checks)))
        if isinstance(one.fact, facts.CheckOpen)
    ]
    assert found == [
        (Kind.PROBLEM, "failed"),
        (Kind.PROBLEM, "error"),
        (Kind.PROBLEM, "inconclusive"),
        (Kind.SKIPPED, "skipped"),
    ]


def test_what_did_not_run_is_named() -> None:
    whole = run(check_stage(PASSED), asked=("codec", "speed"), not_asked=("ops", "plan"))
    assert (Kind.PROBLEM, "", "NotReached") in kinds(whole)
    facts_found = [one.fact for one in findings(whole)]
    assert facts.NotReached(("speed",)) in facts_found
    assert facts.NotAsked(("ops", "plan")) in facts_found
    assert not {"NotReached", "NotAsked"} & {name for _, _, name in kinds(run(check_stage(PASSED)))}


def test_advice_needs_a_rated_pair() -> None:
    rows = (quality_row(TQ3_0), quality_row("q8_0/tq3_0"))
    whole = run(QualityStage(status=PASSED, rows=rows))
    advice = [name for kind, _, name in kinds(whole) if kind is Kind.ADVICE]
    assert advice == ["PairLevels", "BetterKeys"]
    unrotated = run(QualityStage(status=PASSED, rows=(quality_row("q4_0", unrotated=True),)))
    assert [kind for kind, _, _ in kinds(unrotated) if kind is Kind.ADVICE] == []
