"""Evaluate a text once: score windows of it against a reference and generate greedy continuations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.child.engine import Engine, Tick, Tokens
from tqforge.core.divergence import TokenScore, compare


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text with its windows (first scored token, count) and the prefix lengths that are continued by `limit` tokens.

    A start must lie before a window or after its last token.
    """

    tokens: Tokens
    windows: Sequence[tuple[int, int]]
    starts: Sequence[int] = ()
    limit: int = 0

    @property
    def scored(self) -> int:
        return sum(count for _, count in self.windows)

    def steps(self) -> list[tuple[int, int]]:
        """Return windows, and starts as windows without tokens, in the order of the text."""
        return sorted([*((start, count) for start, count in self.windows), *((start, 0) for start in self.starts)])


@dataclass
class PassageScores:
    """A score per scored token; per start the generated tokens and how many of them match the reference."""

    scores: list[TokenScore] = field(default_factory=list)
    made: list[Tokens] = field(default_factory=list)
    equal: list[int] = field(default_factory=list)


class Reader:
    """Evaluates a passage in the open context of an engine."""

    def __init__(self, engine: Engine, passage: Passage, tick: Tick | None = None) -> None:
        self._engine, self._passage, self._tick = engine, passage, tick
        self._done = 0

    def read(self, reference: Path | None, save: Path | None, made: Sequence[Tokens] | None) -> PassageScores:
        """Return the scores against another run: its logits in the file `reference`, its continuations `made`.

        Without them this run becomes a reference: its logits go to the file `save`, as float32 (scored, vocabulary).
        """
        found, shape = PassageScores(), (self._passage.scored, self._engine.n_vocab)
        kept = np.lib.format.open_memmap(save, mode="w+", dtype=np.float32, shape=shape) if save else None
        wanted = np.load(reference, mmap_mode="r") if reference else None
        for start, count in self._passage.steps():
            if count:
                self._window(start, count, found, kept, wanted)
            else:
                self._greedy(start, found, made[len(found.made)] if made is not None else None)
        return found

    def _advance(self, end: int, *, scored: int = 0) -> None:
        if end > self._done:
            self._engine.decode(self._passage.tokens[self._done : end], scored=scored)
            self._done = end
            if self._tick:
                self._tick(end)

    def _window(
        self,
        start: int,
        count: int,
        found: PassageScores,
        kept: NDArray[np.float32] | None,
        wanted: NDArray[np.float32] | None,
    ) -> None:
        tokens, size = self._passage.tokens, self._engine.batch_size
        self._advance(start - 1)
        last = start + count - 1
        while self._done < last:
            first, end = self._done, min(self._done + size, last)
            self._advance(end, scored=end - first)
            for place in range(end - first):
                row, number = self._engine.finite_logits(place), len(found.scores)
                if kept is not None:
                    kept[number] = row
                target = tokens[first + place + 1]
                found.scores.append(compare(row, target, None if wanted is None else wanted[number]))

    def _greedy(self, start: int, found: PassageScores, reference: Tokens | None) -> None:
        self._advance(start, scored=1)
        limit = self._passage.limit
        made, ended = self._engine.generate(limit, stop_unlike=reference)
        self._engine.keep(start)
        found.made.append(made)
        found.equal.append(equal_tokens(made, ended, made if reference is None else reference, limit))


def equal_tokens(made: Tokens, ended: bool, wanted: Tokens, limit: int) -> int:
    """Return the number of tokens before the first difference, or `limit` if both texts end alike without one."""
    same = next((place for place, (a, b) in enumerate(zip(made, wanted, strict=False)) if a != b), None)
    if same is not None:
        return same
    whole = len(made) == len(wanted) and ended == (len(wanted) < limit)
    return limit if whole else min(len(made), len(wanted))
