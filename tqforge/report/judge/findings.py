"""What a run showed, in plain words. Pure rules: nothing is said here that the report does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tqforge.report.fmt import STAGE_TITLE, STATUS_SIGN, STATUS_WORD, ending, line, listing, plural, sentence
from tqforge.report.judge import pair_levels, quality, stages
from tqforge.report.judge.select import effective, missing_stages, observations, plan_stage, unreached_stages
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import CheckStage, OpsStage, Stage


class Kind(StrEnum):
    """Where a finding belongs. The order is the order of reading."""

    SHORT = "short"
    SHOWN = "shown"
    ADVICE = "advice"
    SKIPPED = "skipped"


KIND_TITLE = {
    Kind.SHORT: "Problems",
    Kind.SHOWN: "Results",
    Kind.ADVICE: "Recommendations",
    Kind.SKIPPED: "Skipped, and why",
}


@dataclass(frozen=True)
class Finding:
    """One sentence or two about one stage."""

    kind: Kind
    stage: str
    text: str

    @property
    def title(self) -> str:
        return _title(self.stage)


class Tone(StrEnum):
    """How the first line sounds."""

    GOOD = "good"
    MIXED = "mixed"
    BAD = "bad"
    NONE = "none"


@dataclass(frozen=True)
class Headline:
    """The whole run in a word and a few sentences."""

    tone: Tone
    word: str
    text: str


@dataclass(frozen=True)
class Mark:
    """What became of one stage: a name for its style, a sign and a word."""

    css: str
    sign: str
    word: str


def marks(report: Report) -> list[Mark]:
    """One mark per stage, in their order; a stage that passed with a shortfall in it is not called held."""
    lossy = {finding.stage for finding in findings(report) if finding.kind is Kind.SHORT}
    found = []
    for stage in report.stages:
        state = effective(stage)
        if state is StageStatus.PASSED and stage.name in lossy:
            found.append(Mark("losses", "~", "losses measured"))
        else:
            found.append(Mark(state.value, STATUS_SIGN[state], STATUS_WORD[state]))
    return found


def headline(report: Report) -> Headline:
    """The worst that happened decides; neither a recorded status nor a stage that passed can hide a loss."""
    found = findings(report)
    lossy = {finding.stage for finding in found if finding.kind is Kind.SHORT}
    states: dict[str, StageStatus] = {stage.name: effective(stage) for stage in report.stages}
    held = [name for name, state in states.items() if state is StageStatus.PASSED and name not in lossy]
    losses = [name for name, state in states.items() if state is StageStatus.PASSED and name in lossy]
    late = unreached_stages(report)
    text = _sentences(states, held, losses, late)
    if StageStatus.ERROR in states.values() or report.status is StageStatus.ERROR:
        return Headline(Tone.BAD, "Broke off", text)
    if StageStatus.FAILED in states.values() or report.status is StageStatus.FAILED:
        return Headline(Tone.BAD, "Fell short", text)
    if late:
        return Headline(Tone.MIXED, "Unfinished", text)
    if not held and not losses:
        return Headline(Tone.NONE, "Nothing shown", text)
    if losses:
        return Headline(Tone.MIXED, "Losses measured", text)
    open_ends = len(held) < len(states)
    return Headline(Tone.MIXED if open_ends else Tone.GOOD, "Held, as far as it ran" if open_ends else "Held", text)


def _title(stage: str) -> str:
    return STAGE_TITLE.get(stage, line(stage))


def _sentences(states: dict[str, StageStatus], held: list[str], losses: list[str], late: list[str]) -> str:
    def named(status: StageStatus) -> list[str]:
        return [name for name, state in states.items() if state is status]

    parts = (
        (named(StageStatus.ERROR), "The run broke off in {}"),
        (named(StageStatus.FAILED), "{} fell short"),
        (losses, "{} ran to the end and measured losses"),
        (held, "{} held"),
        (named(StageStatus.INCONCLUSIVE), "{} came to no conclusion"),
        (named(StageStatus.SKIPPED), "{} could not run here"),
        (late, "{} did not come to its turn" if len(late) == 1 else "{} did not come to their turn"),
    )
    sentences = [
        sentence(form.format(listing(_title(name).lower() for name in names))) for names, form in parts if names
    ]
    if not held and not losses and not named(StageStatus.FAILED):
        sentences.append("Nothing was shown in this run")
    return " ".join(ending(part) for part in sentences)


def findings(report: Report) -> list[Finding]:
    """Every finding, in the order of reading: problems, results, recommendations, skipped."""
    found = [finding for stage in report.stages for finding in _of_stage(report, stage)]
    found += [Finding(Kind.ADVICE, stage, text) for stage, text in _advice(report)]
    late = [_title(name).lower() for name in unreached_stages(report)]
    if late:
        found.append(Finding(Kind.SHORT, "", f"The run ended before it came to: {listing(late)}."))
    absent = [STAGE_TITLE[name].lower() for name in missing_stages(report)]
    if absent:
        found.append(Finding(Kind.SKIPPED, "", f"This run was not asked for: {listing(absent)}."))
    rank = {kind: place for place, kind in enumerate(Kind)}
    return sorted(found, key=lambda finding: rank[finding.kind])


def _advice(report: Report) -> Iterator[tuple[str, str]]:
    if levels := pair_levels.sentence(report):
        yield "", levels
    yield from quality.advice(report)
    if plan := plan_stage(report):
        yield from ((plan.name, pair_levels.budget(choice)) for choice in plan.recommendations)


def _of_stage(report: Report, stage: Stage) -> Iterator[Finding]:
    yield from _state(stage)
    for good, text in _judged(report, stage):
        yield Finding(Kind.SHOWN if good else Kind.SHORT, stage.name, text)
    if isinstance(stage, CheckStage):
        yield from _unsettled_checks(stage)


def _judged(report: Report, stage: Stage) -> Iterator[tuple[bool, str]]:
    if isinstance(stage, CheckStage):
        return stages.checks(stage)
    if isinstance(stage, OpsStage):
        return stages.ops(stage)
    rules: dict[str, Callable[[Report], Iterator[tuple[bool, str]]]] = {
        "device": stages.device,
        "memory": stages.memory,
        "needle": stages.needle,
        "quality": quality.quality,
        "speed": stages.speed,
        "plan": lambda _: iter(()),
    }
    return rules[stage.name](report)


def _state(stage: Stage) -> Iterator[Finding]:
    """What the stage says of itself, where that is more than "it ran"."""
    why = _why(stage)
    match effective(stage):
        case StageStatus.ERROR:
            done = observations(stage)
            yield Finding(Kind.SHORT, stage.name, f"Broke off after {plural(done, 'observation')}. {why}".strip())
        case StageStatus.FAILED if why:
            yield Finding(Kind.SHORT, stage.name, why)
        case StageStatus.SKIPPED:
            yield Finding(Kind.SKIPPED, stage.name, why or "No reason was recorded.")
        case StageStatus.INCONCLUSIVE if stage.status is StageStatus.PASSED:
            yield Finding(Kind.SHORT, stage.name, "Recorded as passed without a single observation: it shows nothing.")
        case StageStatus.INCONCLUSIVE:
            yield Finding(Kind.SHORT, stage.name, f"No conclusion. {why or 'No reason was recorded.'}")
        case _:
            return


def _why(stage: Stage) -> str:
    """Reason, place and remedy, each once: the recorded failure adds what the stage itself does not say."""
    parts = [stage.reason, stage.remedy]
    if stage.error:
        place = f"Where: {stage.error.where}" if stage.error.where else ""
        parts = [stage.reason or stage.error.what, place, stage.remedy or stage.error.remedy]
    return " ".join(dict.fromkeys(sentence(ending(line(part))) for part in parts if part.strip()))


def _unsettled_checks(stage: CheckStage) -> Iterator[Finding]:
    for check in stage.checks:
        reason = ending(line(check.reason)) or "No reason was recorded."
        if check.status is StageStatus.SKIPPED:
            yield Finding(Kind.SKIPPED, stage.name, f"{line(check.name)}: {reason}")
        elif check.status is StageStatus.INCONCLUSIVE:
            yield Finding(Kind.SHORT, stage.name, f"{line(check.name)} came to no conclusion. {reason}")
