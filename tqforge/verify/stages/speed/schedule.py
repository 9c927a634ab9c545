"""Plan the runs of a speed measurement and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tqforge.adapters.gguf_io import ModelFacts
from tqforge.verify.session import SkippedError
from tqforge.verify.settings import Settings

#: How often a run is taken even if it is slow: less has no spread.
LEAST_ROUNDS = 2


@dataclass(frozen=True)
class Step:
    """One run of one open context; a prefill is followed by generated tokens."""

    what: Literal["fill", "decode", "prefill"]
    place: int
    depth: int
    count: int
    round: int = 0


def usable_depths(settings: Settings, facts: ModelFacts) -> tuple[int, ...]:
    """The depths that leave the model room for a prompt. Raises SkippedError when there is none.

    Rates do not depend on what is read: with rotary positions a text may be longer than what the model was trained for.
    """
    need = settings.speed_prefill + settings.speed_decode
    depths = tuple(d for d in settings.speed_depths if facts.rotary or d + need <= facts.trained_context)
    if not depths:
        where = f"no depth of {settings.speed_depths} fits into the {facts.trained_context} tokens of the model"
        raise SkippedError(where)
    return depths


def plan(depths: Sequence[int], places: int, settings: Settings) -> list[Step]:
    """Fill all contexts to a depth before it is measured; each round starts with another one."""
    steps = []
    for depth in depths:
        if depth:
            steps += [Step("fill", place, depth, depth) for place in range(places)]
        for number in range(settings.speed_rounds):
            turn = [(number + place) % places for place in range(places)]
            steps += [Step("decode", place, depth, settings.speed_decode, number) for place in turn]
            steps += [Step("prefill", place, depth, settings.speed_prefill, number) for place in turn]
    return steps


def weight(step: Step) -> float:
    """Estimate the time of a run: a single token costs as much as several in a batch."""
    return step.count * (8 if step.what == "decode" else 1)


@dataclass
class Patience:
    """Limit the rounds of runs that take longer than `limit` seconds."""

    limit: float

    def __post_init__(self) -> None:
        self._slow: set[tuple[str, int, int]] = set()

    def note(self, step: Step, seconds: float) -> None:
        if seconds > self.limit:
            self._slow.add((step.what, step.place, step.depth))

    def skips(self, step: Step) -> bool:
        return step.round >= LEAST_ROUNDS and (step.what, step.place, step.depth) in self._slow
