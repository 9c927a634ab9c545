"""What a claim is, what it is judged on, and the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp
from statistics import fmean

from tqforge.lab.request import Capture, LayerFacts, Prompt, Scores, Trial
from tqforge.verify.stages.needle.scoring import score


class Outcome(StrEnum):
    """What a run says of a claim."""

    REPRODUCED = "reproduced"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Verdict:
    """The outcome, and the figures of this run that lead to it."""

    outcome: Outcome
    shown: str


@dataclass(frozen=True)
class Evidence:
    """All that was measured on one model."""

    model: str
    family: str
    parameters: int
    scores: dict[Trial, Scores]
    reference: tuple[float, ...]
    prompts: tuple[Prompt, ...]
    answers: dict[Trial, tuple[str, ...]]
    capture: Capture | None

    def kl(self, text: str) -> float:
        """Return the mean KL from f16 in nats of a trial such as `lm3/lm4`."""
        return fmean(self.scores[Trial.parse(text)].kl)

    def perplexity_increase(self, text: str) -> float:
        """Return how much a trial raises the perplexity over f16, as a fraction."""
        nll = self.scores[Trial.parse(text)].nll
        return exp(fmean(a - b for a, b in zip(nll, self.reference, strict=True))) - 1

    def found(self, text: str) -> float:
        """Return the mean needle score of a trial: both words 1, one 0.5, none 0."""
        texts = self.answers[Trial.parse(text)]
        return fmean(score(answer, prompt.words).score for answer, prompt in zip(texts, self.prompts, strict=True))

    @property
    def layers(self) -> tuple[LayerFacts, ...]:
        return self.capture.layers if self.capture else ()


Judge = Callable[[Sequence[Evidence]], Verdict]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published statement. `trials` and `needles` name what has to be measured for its judge."""

    name: str
    statement: str
    published: str
    theory: str
    judge: Judge
    trials: tuple[str, ...] = ()
    needles: tuple[str, ...] = ()
    capture: bool = False


def verdict(holds: bool, shown: str) -> Verdict:
    return Verdict(Outcome.REPRODUCED if holds else Outcome.REFUTED, shown)


def undecided(why: str) -> Verdict:
    return Verdict(Outcome.UNDECIDED, why)


def on_all(models: Sequence[Evidence], test: Callable[[Evidence], tuple[bool, str]]) -> Verdict:
    """Judge model by model; where they disagree, the claim does not hold in general and is refuted."""
    if not models:
        return undecided("no model was measured")
    results = [(one.model, *test(one)) for one in models]
    shown = "; ".join(f"{name}: {text}" for name, _, text in results)
    holds = [good for _, good, _ in results]
    if all(holds) or not any(holds):
        return verdict(holds[0], shown)
    return verdict(False, f"the models disagree: {shown}")
