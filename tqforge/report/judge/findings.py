"""What a run showed: findings by kind, and the state of the run as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from tqforge.report.judge import facts, pair_levels, stages
from tqforge.report.judge.facts import Fact
from tqforge.report.judge.select import effective, observations, plan_stage, unreached_stages
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import CheckStage, Stage


class Kind(StrEnum):
    """Where a finding belongs, in the order of reading."""

    PROBLEM = "problem"
    RESULT = "result"
    ADVICE = "advice"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """A fact about one stage, or about the run if `stage` is empty."""

    kind: Kind
    stage: str
    fact: Fact


class Tone(StrEnum):
    """The overall result of a run."""

    GOOD = "good"
    MIXED = "mixed"
    BAD = "bad"
    NONE = "none"


class Overall(StrEnum):
    """The result of a run in a word; the worst stage decides."""

    ERROR = "error"
    FAILED = "failed"
    UNFINISHED = "unfinished"
    NO_RESULTS = "no results"
    LOSSES = "losses"
    PARTLY_PASSED = "partly passed"
    PASSED = "passed"

    @property
    def tone(self) -> Tone:
        """Return how it is shown."""
        return {
            Overall.ERROR: Tone.BAD,
            Overall.FAILED: Tone.BAD,
            Overall.NO_RESULTS: Tone.NONE,
            Overall.PASSED: Tone.GOOD,
        }.get(self, Tone.MIXED)


@dataclass(frozen=True)
class Summary:
    """The overall result, with the stages by what became of them."""

    overall: Overall
    by_status: dict[StageStatus, list[str]]
    losses: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)


def lossy_stages(report: Report) -> set[str]:
    """Return the names of the stages with a problem in them."""
    return {finding.stage for finding in findings(report) if finding.kind is Kind.PROBLEM}


def summary(report: Report) -> Summary:
    """Sum up a run. Neither a recorded status nor a stage that passed can hide a loss."""
    lossy = lossy_stages(report)
    by_status: dict[StageStatus, list[str]] = {status: [] for status in StageStatus}
    losses: list[str] = []
    for stage in report.stages:
        state = effective(stage)
        (losses if state is StageStatus.PASSED and stage.name in lossy else by_status[state]).append(stage.name)
    late = unreached_stages(report)
    return Summary(_overall(report, by_status, losses, late), by_status, losses, late)


def _overall(
    report: Report, by_status: dict[StageStatus, list[str]], losses: list[str], unreached: list[str]
) -> Overall:
    passed = by_status[StageStatus.PASSED]
    if by_status[StageStatus.ERROR] or report.status is StageStatus.ERROR:
        return Overall.ERROR
    if by_status[StageStatus.FAILED] or report.status is StageStatus.FAILED:
        return Overall.FAILED
    if unreached:
        return Overall.UNFINISHED
    if not passed and not losses:
        return Overall.NO_RESULTS
    if losses:
        return Overall.LOSSES
    return Overall.PASSED if len(passed) == len(report.stages) else Overall.PARTLY_PASSED


def findings(report: Report) -> list[Finding]:
    """Return every finding by kind, and inside a kind by stage."""
    found = [finding for stage in report.stages for finding in _of_stage(report, stage)]
    found += _advice(report)
    if late := unreached_stages(report):
        found.append(Finding(Kind.PROBLEM, "", facts.NotReached(tuple(late))))
    if report.not_asked:
        found.append(Finding(Kind.SKIPPED, "", facts.NotAsked(report.not_asked)))
    rank = {kind: place for place, kind in enumerate(Kind)}
    return sorted(found, key=lambda finding: rank[finding.kind])


def _advice(report: Report) -> Iterator[Finding]:
    if rated := tuple(one for one in pair_levels.judge(report) if not one.unrotated):
        yield Finding(Kind.ADVICE, "", facts.PairLevels(rated, pair_levels.reach(report)))
    yield from (Finding(Kind.ADVICE, "quality", fact) for fact in stages.better_keys(report))
    if plan := plan_stage(report):
        yield from (Finding(Kind.ADVICE, plan.name, facts.Recommended(one)) for one in plan.recommendations)


def _of_stage(report: Report, stage: Stage) -> Iterator[Finding]:
    yield from _state(stage)
    for good, fact in stages.show(stage, report):
        yield Finding(Kind.RESULT if good else Kind.PROBLEM, stage.name, fact)
    if isinstance(stage, CheckStage):
        kinds = {StageStatus.SKIPPED: Kind.SKIPPED, StageStatus.INCONCLUSIVE: Kind.PROBLEM}
        opened = (check for check in stage.checks if check.status in kinds)
        yield from (Finding(kinds[check.status], stage.name, facts.CheckOpen(check)) for check in opened)


def _state(stage: Stage) -> Iterator[Finding]:
    """Return how the stage ended, where that is more than "it ran"."""
    state, fact = effective(stage), facts.StageEnded(stage, observations(stage))
    if state is StageStatus.FAILED and not (stage.reason or stage.remedy or stage.error):
        return  # its rows say it
    if state is not StageStatus.PASSED:
        yield Finding(Kind.SKIPPED if state is StageStatus.SKIPPED else Kind.PROBLEM, stage.name, fact)
