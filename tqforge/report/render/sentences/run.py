"""A whole run in words: the headline, a mark per stage, and the findings by kind."""

from __future__ import annotations

from dataclasses import dataclass

from tqforge.report import fmt
from tqforge.report.judge import findings as rules
from tqforge.report.judge.findings import Kind, Overall, Tone
from tqforge.report.judge.select import effective
from tqforge.report.render.sentences import reasons
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.report import Report

KIND_TITLE = {
    Kind.PROBLEM: "Problems",
    Kind.RESULT: "Results",
    Kind.ADVICE: "Recommendations",
    Kind.SKIPPED: "Skipped",
}
_WORD = {
    Overall.ERROR: "Error",
    Overall.FAILED: "Failed",
    Overall.UNFINISHED: "Unfinished",
    Overall.NO_RESULTS: "No results",
    Overall.LOSSES: "Losses measured",
    Overall.PARTLY_PASSED: "Passed, as far as it ran",
    Overall.PASSED: "Passed",
}


@dataclass(frozen=True)
class Sentence:
    """A finding in words."""

    kind: Kind
    stage: str
    text: str

    @property
    def title(self) -> str:
        """Return the name of the stage as a heading; empty for the run as a whole."""
        return fmt.stage_title(self.stage)


@dataclass(frozen=True)
class Headline:
    """The whole run in a word and a few sentences."""

    tone: Tone
    word: str
    text: str


@dataclass(frozen=True)
class Mark:
    """The result of one stage: a name for its style, a sign and a word."""

    css: str
    sign: str
    word: str


def findings(report: Report) -> list[Sentence]:
    """Return all findings in words."""
    return [Sentence(found.kind, found.stage, reasons.sentence(found.fact)) for found in rules.findings(report)]


def marks(report: Report) -> list[Mark]:
    """Return one mark per stage; a stage that passed with a problem in it is not called passed."""
    lossy = rules.lossy_stages(report)
    found = []
    for stage in report.stages:
        state = effective(stage)
        if state is StageStatus.PASSED and stage.name in lossy:
            found.append(Mark("losses", "~", "losses measured"))
        else:
            found.append(Mark(state.value, fmt.STATUS_SIGN[state], fmt.STATUS_WORD[state]))
    return found


def headline(report: Report) -> Headline:
    """Sum up the run."""
    found = rules.summary(report)
    passed = found.by_status[StageStatus.PASSED]
    parts = (
        (found.by_status[StageStatus.ERROR], "{} ended in an error"),
        (found.by_status[StageStatus.FAILED], "{} failed"),
        (found.losses, "{} finished and measured losses"),
        (passed, "{} passed"),
        (found.by_status[StageStatus.INCONCLUSIVE], "{} {verb} inconclusive"),
        (found.by_status[StageStatus.SKIPPED], "{} could not run here"),
        (found.unreached, "{} did not run"),
    )
    texts = [
        fmt.sentence(form.format(fmt.listing(names), verb="is" if len(names) == 1 else "are"))
        for names, form in parts
        if names
    ]
    if not passed and not found.losses and not found.by_status[StageStatus.FAILED]:
        texts.append("This run has no results")
    return Headline(found.overall.tone, _WORD[found.overall], " ".join(map(fmt.ending, texts)))
