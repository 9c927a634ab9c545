"""Count needle cells per place, pair and control."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tqforge.core.pair import Pair
from tqforge.report.judge.select import pair_order, stages_of
from tqforge.report.schema.base import CellOutcome
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import NeedleCell, NeedleSummary
from tqforge.report.schema.stages import NeedleStage

NO_NEEDLE = "no-needle"
_SCORE = {CellOutcome.HIT: 1.0, CellOutcome.PARTIAL: 0.5, CellOutcome.MISS: 0.0}


@dataclass(frozen=True)
class Tally:
    """Needle cells counted by outcome."""

    hits: int = 0
    partial: int = 0
    misses: int = 0
    inconclusive: int = 0
    errors: int = 0
    score: float | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts in the order of the fields, which is that of the outcomes."""
        return self.hits, self.partial, self.misses, self.inconclusive, self.errors

    @property
    def n(self) -> int:
        """Number of judged cells."""
        return self.hits + self.partial + self.misses

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def kind(self) -> str:
        """What a map shows here: judged, error, inconclusive, or empty (not asked)."""
        if self.n:
            return "judged"
        return "error" if self.errors else "inconclusive" if self.inconclusive else "empty"


def tally(cells: Iterable[NeedleCell]) -> Tally:
    """Count cells by outcome; the score is the mean over judged cells."""
    kept = list(cells)
    number = Counter(cell.outcome for cell in kept)
    judged = [cell for cell in kept if cell.outcome in _SCORE]
    scores = [_SCORE[cell.outcome] if cell.score is None else cell.score for cell in judged]
    counted = Tally(*(number[outcome] for outcome in CellOutcome))
    return replace(counted, score=sum(scores) / len(scores) if scores else None)


def together(tallies: Iterable[Tally]) -> Tally:
    """Add up the counts of several places."""
    parts = list(tallies)
    scored = [(part.score, part.n) for part in parts if part.score is not None]
    n = sum(weight for _, weight in scored)
    counts = map(sum, zip(*(part.counts for part in parts), strict=True))
    return replace(Tally(*counts), score=sum(score * weight for score, weight in scored) / n if n else None)


@dataclass(frozen=True)
class NeedleMap:
    """The cells of one pair (or of one control): rows are lengths, columns are depths."""

    pair: Pair
    control: str
    depths: tuple[float, ...]
    rows: tuple[tuple[int, tuple[Tally, ...]], ...]
    total: Tally

    @property
    def is_reference(self) -> bool:
        return self.control == "f16"

    @property
    def must_miss(self) -> bool:
        """No needle was hidden: anything found is a guess."""
        return self.control == NO_NEEDLE


def needle_maps(report: Report) -> list[NeedleMap]:
    """Return one map per pair and control, the no-needle control last."""
    stages = stages_of(report, NeedleStage)
    cells = [cell for stage in stages for cell in stage.cells]
    asked = [cell for cell in cells if cell.control != NO_NEEDLE]
    lengths = sorted({cell.length for cell in cells}.union(*(stage.lengths for stage in stages)))
    depths = tuple(sorted({cell.depth for cell in asked}.union(*(stage.depths for stage in stages))))
    order = pair_order(report)
    groups: dict[tuple[Pair, str], list[NeedleCell]] = defaultdict(list)
    for cell in cells:
        groups[cell.pair, cell.control].append(cell)
    rank = {"f16": 0, "none": 1, NO_NEEDLE: 2}
    keys = sorted(groups, key=lambda key: (key[1] == NO_NEEDLE, *order(key[0]), rank.get(key[1], 1)))
    return [_needle_map(key, groups[key], lengths, () if key[1] == NO_NEEDLE else depths) for key in keys]


def _needle_map(
    key: tuple[Pair, str], cells: list[NeedleCell], lengths: list[int], depths: tuple[float, ...]
) -> NeedleMap:
    """Without depths (there is no needle) a row is a single place."""
    rows = []
    for length in lengths:
        here = [cell for cell in cells if cell.length == length]
        places = tuple(tally(cell for cell in here if cell.depth == depth) for depth in depths)
        rows.append((length, places or (tally(here),)))
    return NeedleMap(key[0], key[1], depths, tuple(rows), tally(cells))


def needle_summary(report: Report, pair: Pair) -> NeedleSummary | None:
    """Return the recorded summary of a pair over all lengths."""
    summaries = (summary for stage in stages_of(report, NeedleStage) for summary in stage.summaries)
    return next((summary for summary in summaries if summary.pair == pair and summary.length is None), None)
