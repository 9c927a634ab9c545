"""Plan the questions for every pair: their order and their cost in tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tqforge.verify.stages.needle.facts import Fact, fact
from tqforge.verify.stages.needle.prompt import Frame, Hay, Prompt, Tokens, compose

Kind = Literal["needle", "no-needle"]


@dataclass(frozen=True)
class Question:
    """One cell of the grid."""

    kind: Kind
    length: int
    depth: float
    seed: int
    fact: Fact
    prompt: Prompt


@dataclass(frozen=True)
class Evaluation:
    """The steps of a question: keep `held` tokens of the context, append the others."""

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
    """Return a question per length, depth and seed, and one without a needle per length and seed."""
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
    """Order questions by their shared prefix, so that the text before a needle is evaluated once."""
    plan, held = [], 0
    for question in sorted(asked, key=lambda q: (q.prompt.shared, q.length, q.seed)):
        tokens, shared = question.prompt.tokens, question.prompt.shared
        plan.append(Evaluation(question, held, tokens[held:shared], tokens[shared:]))
        held = shared
    return plan


def fresh_plan(asked: Sequence[Question]) -> list[Evaluation]:
    """Evaluate every question from an empty context."""
    return [Evaluation(question, 0, (), question.prompt.tokens) for question in asked]
