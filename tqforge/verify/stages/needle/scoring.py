"""Score answers: 1 for both words of a fact, 0.5 for one, 0 for none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tqforge.core.pair import Pair
from tqforge.report.schema.base import CellOutcome, NeedleResult
from tqforge.report.schema.rows import NearMiss, NeedleCell, NeedleSummary
from tqforge.verify.stats import edit_distance, wilson

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Score:
    """The score of one answer."""

    score: float
    exact: bool
    found: tuple[str, ...]
    near_misses: tuple[NearMiss, ...]

    @property
    def outcome(self) -> CellOutcome:
        return {1.0: CellOutcome.HIT, 0.0: CellOutcome.MISS}.get(self.score, CellOutcome.PARTIAL)


def score(answer: str, facts: tuple[str, ...]) -> Score:
    """Score whole words, case-insensitive; `exact` means that every word is there letter for letter."""
    words = _WORD.findall(answer)
    folded = {word.casefold() for word in words}
    found = tuple(fact for fact in facts if fact.casefold() in folded)
    missing = [fact for fact in facts if fact not in found]
    near = tuple(miss for fact in missing if (miss := _nearest(fact, words)))
    return Score(len(found) / len(facts), all(fact in words for fact in facts), found, near)


def _nearest(fact: str, words: Iterable[str]) -> NearMiss | None:
    """Return the closest word of the answer if it shares at least half of the fact."""
    rated = [(edit_distance(fact.casefold(), word.casefold()), word) for word in words]
    if not rated:
        return None
    distance, word = min(rated)
    return NearMiss(expected=fact, seen=word, distance=distance) if distance <= len(fact) // 2 else None


def judge(cells: Iterable[NeedleCell]) -> tuple[NeedleCell, ...]:
    """Mark the cells inconclusive whose f16 control did not find the whole fact."""
    kept = tuple(cells)
    controls = {_key(cell): cell for cell in kept if cell.control == "f16"}
    judged = []
    for cell in kept:
        control = controls.get(_key(cell))
        open_question = control is not None and control.outcome is not CellOutcome.HIT
        if cell.control == "none" and open_question and cell.outcome is not CellOutcome.ERROR:
            judged.append(cell.model_copy(update={"outcome": CellOutcome.INCONCLUSIVE}))
        else:
            judged.append(cell)
    return tuple(judged)


def _key(cell: NeedleCell) -> tuple[int, float, int]:
    return cell.length, cell.depth, cell.seed


def summarize(cells: Iterable[NeedleCell], pairs: Iterable[Pair]) -> tuple[NeedleSummary, ...]:
    """Summarize each pair over all lengths, then per length, without the no-needle control."""
    kept = [cell for cell in cells if cell.control != "no-needle"]
    lengths = sorted({cell.length for cell in kept})
    scopes: list[int | None] = [None, *lengths]
    return tuple(_summary(kept, pair, length) for pair in pairs for length in scopes)


def _summary(cells: list[NeedleCell], pair: Pair, length: int | None) -> NeedleSummary:
    mine = [cell for cell in cells if cell.pair == pair and length in (None, cell.length)]
    count = {outcome: sum(cell.outcome is outcome for cell in mine) for outcome in CellOutcome}
    scores = [cell.score for cell in mine if cell.outcome in (CellOutcome.HIT, CellOutcome.PARTIAL, CellOutcome.MISS)]
    known = [value for value in scores if value is not None]
    return NeedleSummary(
        pair=pair,
        length=length,
        n=len(known),
        hits=count[CellOutcome.HIT],
        partial=count[CellOutcome.PARTIAL],
        misses=count[CellOutcome.MISS],
        inconclusive=count[CellOutcome.INCONCLUSIVE],
        errors=count[CellOutcome.ERROR],
        mean_score=sum(known) / len(known) if known else None,
        rate=wilson(count[CellOutcome.HIT], len(known)),
        outcome=_kept(count[CellOutcome.HIT], len(known), count[CellOutcome.ERROR]),
    )


def _kept(hits: int, n: int, errors: int) -> NeedleResult:
    """Return the result for the needles that f16 found."""
    if errors:
        return NeedleResult.ERRORS
    if not n:
        return NeedleResult.NOT_JUDGED
    return NeedleResult.KEPT if hits == n else NeedleResult.LOSSES if hits else NeedleResult.LOST
