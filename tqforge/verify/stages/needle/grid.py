"""Which questions are put to every pair, in which order, and what they cost. Pure: tested as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tqforge.verify.stages.needle.facts import Fact, fact
from tqforge.verify.stages.needle.prompt import Frame, Hay, Prompt, Tokens, compose

Kind = Literal["needle", "no-needle"]


@dataclass(frozen=True)
class Question:
    """One cell of the grid for one pair."""

    kind: Kind
    length: int
    depth: float
    seed: int
    fact: Fact
    prompt: Prompt


@dataclass(frozen=True)
class Evaluation:
    """What the child does for a question: keep so many tokens of the context, append the others."""

    question: Question
    held: int  # tokens of the context that stay
    trunk: Tokens  # appended first; stays for later questions
    branch: Tokens  # forgotten after the answer

    @property
    def cost(self) -> int:
        return len(self.trunk) + len(self.branch)


def questions(
    hay: Hay, frame: Frame, needles: dict[int, Tokens], lengths: Sequence[int], depths: Sequence[float]
) -> list[Question]:
    """Every length, depth and seed, and per length and seed one prompt without a needle, its hay as long."""
    found = []
    for length in lengths:
        for seed, needle in needles.items():
            for depth in depths:
                prompt = compose(hay, frame, needle, length, depth)
                found.append(Question("needle", length, depth, seed, fact(seed), prompt))
            bare = compose(hay, frame, (), length, 1.0)
            found.append(Question("no-needle", length, 1.0, seed, fact(seed), bare))
    return found


def shared_plan(asked: Sequence[Question]) -> list[Evaluation]:
    """In the order of what they share: the hay before a needle is evaluated once and grows from one to the next."""
    plan, held = [], 0
    for question in sorted(asked, key=lambda q: (q.prompt.shared, q.length, q.seed)):
        tokens, shared = question.prompt.tokens, question.prompt.shared
        plan.append(Evaluation(question, held, tokens[held:shared], tokens[shared:]))
        held = shared
    return plan


def fresh_plan(asked: Sequence[Question]) -> list[Evaluation]:
    """Every question from an empty context."""
    return [Evaluation(question, 0, (), question.prompt.tokens) for question in asked]
