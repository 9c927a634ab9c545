"""Prompts of an exact length in token space.

The text is cut into sentences, each sentence is tokenized by itself, and a prompt is put together from token lists: the
template's head, hay up to a sentence's end, the needle, hay up to the budget, the question and the template's tail.
Special tokens stand in head and tail alone, so they are counted once. All prompts begin with the same hay: what comes
before the needle is a prefix that cells share.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tqforge.errors import ContextLengthError

Tokens = tuple[int, ...]
Tokenize = Callable[[Sequence[str]], list[list[int]]]

_SENTENCE_END = re.compile(r"(?<=[.!?])(?=\s)")
_LEAST_HAY = 16


def sentences(text: str) -> list[str]:
    """Split a text into sentences, each with the space before it."""
    return [piece for piece in _SENTENCE_END.split(text.strip()) if piece]


@dataclass(frozen=True)
class Hay:
    """The filler text as tokens, with the offset after each sentence."""

    tokens: Tokens
    cuts: tuple[int, ...]

    @classmethod
    def of(cls, text: str, tokenize: Tokenize) -> Hay:
        parts = tokenize(sentences(text))
        tokens = tuple(token for part in parts for token in part)
        return cls(tokens, (0, *accumulate(len(part) for part in parts)))

    def cut_near(self, place: int, budget: int) -> int:
        """Return the end of a sentence nearest to `place`, within the budget."""
        usable = self.cuts[: bisect_left(self.cuts, budget + 1)]
        return min(usable, key=lambda cut: (abs(cut - place), cut))


@dataclass(frozen=True)
class Frame:
    """The template around the text in every prompt."""

    head: Tokens
    tail: Tokens


@dataclass(frozen=True)
class Prompt:
    """A prompt; its first `shared` tokens are the head and the text before the needle."""

    tokens: Tokens
    shared: int

    @property
    def length(self) -> int:
        return len(self.tokens)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(" ".join(map(str, self.tokens)).encode()).hexdigest()


def compose(hay: Hay, frame: Frame, needle: Tokens, length: int, depth: float) -> Prompt:
    """Compose a prompt with the needle after `depth` of its text. Raises ContextLengthError if it does not fit."""
    budget = length - len(frame.head) - len(needle) - len(frame.tail)
    if budget < _LEAST_HAY:
        least = length - budget + _LEAST_HAY
        raise ContextLengthError(
            f"Needle, question and template take {length - budget} tokens; a prompt of {length} has no room for text.",
            remedy=f"Choose lengths from {least} tokens with --lengths.",
        )
    if budget > len(hay.tokens):
        most = len(hay.tokens) + length - budget
        raise ContextLengthError(
            f"The text that ships with tqforge has {len(hay.tokens)} tokens for this model; {budget} are needed.",
            remedy=f"Choose lengths up to {most} tokens with --lengths.",
        )
    place = hay.cut_near(round(depth * budget), budget)
    tokens = (*frame.head, *hay.tokens[:place], *needle, *hay.tokens[place:budget], *frame.tail)
    return Prompt(tokens, len(frame.head) + place)
