"""What a report holds, arranged for reading: stages by name, needle maps, memory and quality by pair. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from tqforge.domain.report.schema import (
    CheckStage,
    MemoryRow,
    MemoryStage,
    NeedleCell,
    NeedleStage,
    NeedleSummary,
    OpsRow,
    OpsStage,
    Outcome,
    QualityRow,
    QualityStage,
    Report,
    SpeedRow,
    SpeedStage,
    Stage,
    Status,
)

STAGE_ORDER = ("source", "codec", "ops", "placement", "memory", "needle", "quality", "speed")
TYPE = "tq3_0"

_S = TypeVar("_S")


def stages_of(report: Report, kind: type[_S]) -> list[_S]:
    """The stages of one class."""
    return [stage for stage in report.stages if isinstance(stage, kind)]


def missing_stages(report: Report) -> list[str]:
    """The stages that this run was not asked for."""
    there = {stage.name for stage in report.stages}
    return [name for name in STAGE_ORDER if name not in there]


def observations(stage: Stage) -> int:
    """How many things a stage has to show."""
    if isinstance(stage, CheckStage):
        return sum(check.status in (Status.PASSED, Status.FAILED) for check in stage.checks)
    if isinstance(stage, NeedleStage):
        return sum(cell.outcome not in (Outcome.ERROR, Outcome.INCONCLUSIVE) for cell in stage.cells)
    if isinstance(stage, OpsStage):
        return sum(row.passed + row.failed for row in stage.rows)
    return len(stage.rows)


def effective(stage: Stage) -> Status:
    """The status of a stage, never better than what it holds: nothing observed is nothing shown."""
    if stage.status is not Status.PASSED:
        return stage.status
    if isinstance(stage, CheckStage) and any(check.status is Status.FAILED for check in stage.checks):
        return Status.FAILED
    if isinstance(stage, CheckStage) and any(check.status is Status.ERROR for check in stage.checks):
        return Status.ERROR
    if isinstance(stage, OpsStage) and any(row.failed for row in stage.rows):
        return Status.FAILED
    if isinstance(stage, MemoryStage) and not all(matches(row) for row in stage.rows):
        return Status.FAILED
    return Status.PASSED if observations(stage) else Status.INCONCLUSIVE


def pair_order(report: Report) -> Callable[[str], tuple[int, str]]:
    """A sort key: pairs as they were asked for, then any other by name."""
    place = {pair: index for index, pair in enumerate(report.pairs)}
    return lambda pair: (place.get(pair, len(place)), pair)


def is_ours(pair: str) -> bool:
    """Whether the pair uses the type that the series adds."""
    return TYPE in pair.split("/")


def is_mixed(pair: str) -> bool:
    return len(set(pair.split("/"))) > 1


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
    def n(self) -> int:
        """Cells that were judged."""
        return self.hits + self.partial + self.misses

    @property
    def total(self) -> int:
        return self.n + self.inconclusive + self.errors

    @property
    def kind(self) -> str:
        """What a map shows in this place: judged, error, inconclusive, or empty (not asked)."""
        if self.n:
            return "judged"
        return "error" if self.errors else "inconclusive" if self.inconclusive else "empty"


def tally(cells: Iterable[NeedleCell]) -> Tally:
    """Count cells; the score is the mean over judged cells only."""
    number: dict[Outcome, int] = defaultdict(int)
    scores = []
    for cell in cells:
        number[cell.outcome] += 1
        if cell.outcome in (Outcome.HIT, Outcome.PARTIAL, Outcome.MISS):
            fallback = {Outcome.HIT: 1.0, Outcome.PARTIAL: 0.5, Outcome.MISS: 0.0}[cell.outcome]
            scores.append(fallback if cell.score is None else cell.score)
    return Tally(
        number[Outcome.HIT],
        number[Outcome.PARTIAL],
        number[Outcome.MISS],
        number[Outcome.INCONCLUSIVE],
        number[Outcome.ERROR],
        sum(scores) / len(scores) if scores else None,
    )


def together(tallies: Iterable[Tally]) -> Tally:
    """The counts of several places as one."""
    parts = list(tallies)
    scores = [(part.score, part.n) for part in parts if part.score is not None]
    n = sum(weight for _, weight in scores)
    return Tally(
        sum(part.hits for part in parts),
        sum(part.partial for part in parts),
        sum(part.misses for part in parts),
        sum(part.inconclusive for part in parts),
        sum(part.errors for part in parts),
        sum(score * weight for score, weight in scores) / n if n else None,
    )


@dataclass(frozen=True)
class NeedleMap:
    """The cells of one pair (or of one control): rows are lengths, columns are depths."""

    pair: str
    control: str
    depths: tuple[float, ...]
    rows: tuple[tuple[int, tuple[Tally, ...]], ...]
    total: Tally

    @property
    def is_reference(self) -> bool:
        return self.control == "f16"

    @property
    def must_miss(self) -> bool:
        """No needle was put in: anything found is luck, and the test is worth less."""
        return self.control == "no-needle"


def needle_maps(report: Report) -> list[NeedleMap]:
    """One map per pair and control: the pairs first, the no-needle control last."""
    stages = stages_of(report, NeedleStage)
    cells = [cell for stage in stages for cell in stage.cells]
    lengths = sorted({cell.length for cell in cells}.union(*(stage.lengths for stage in stages)))
    depths = tuple(sorted({cell.depth for cell in cells}.union(*(stage.depths for stage in stages))))
    order = pair_order(report)
    groups: dict[tuple[str, str], list[NeedleCell]] = defaultdict(list)
    for cell in cells:
        groups[cell.pair, cell.control].append(cell)
    rank = {"f16": 0, "none": 1, "no-needle": 2}
    keys = sorted(groups, key=lambda key: (key[1] == "no-needle", *order(key[0]), rank.get(key[1], 1)))
    return [_needle_map(key, groups[key], lengths, depths) for key in keys]


def _needle_map(
    key: tuple[str, str], cells: list[NeedleCell], lengths: list[int], depths: tuple[float, ...]
) -> NeedleMap:
    places: dict[tuple[int, float], list[NeedleCell]] = defaultdict(list)
    for cell in cells:
        places[cell.length, cell.depth].append(cell)
    rows = tuple((length, tuple(tally(places[length, depth]) for depth in depths)) for length in lengths)
    return NeedleMap(key[0], key[1], depths, rows, tally(cells))


def needle_summary(report: Report, pair: str) -> NeedleSummary | None:
    """The recorded summary of a pair over all lengths."""
    summaries = (summary for stage in stages_of(report, NeedleStage) for summary in stage.summaries)
    return next((summary for summary in summaries if summary.pair == pair and summary.length is None), None)


def memory_rows(report: Report) -> list[MemoryRow]:
    order = pair_order(report)
    rows = [row for stage in stages_of(report, MemoryStage) for row in stage.rows]
    return sorted(rows, key=lambda row: (row.n_ctx, order(row.pair)))


def matches(row: MemoryRow) -> bool:
    """Whether the buffers have the size that the formula gives, to the byte."""
    return (row.k_measured, row.v_measured) == (row.k_formula, row.v_formula)


def measured_bits(row: MemoryRow) -> float | None:
    """Bits per value of K and V together, from the allocated buffers."""
    values = row.k_values + row.v_values
    return 8 * (row.k_measured + row.v_measured) / values if values else None


def block_words(size: int, values: int) -> str:
    """`14/32` bytes per value, or a decimal figure where it is no whole number per 32 values."""
    share = Fraction(32 * size, values) if values else Fraction(0)
    return f"{share.numerator}/32" if share.denominator == 1 else f"{float(share) / 32:.4f}"


def quality_rows(report: Report) -> list[QualityRow]:
    """All rows, the longest prefix first, floors before pairs."""
    order = pair_order(report)
    rows = [row for stage in stages_of(report, QualityStage) for row in stage.rows]
    return sorted(rows, key=lambda row: (-row.prefix, not row.is_floor, order(row.pair), row.rotation))


def main_quality_rows(report: Report) -> list[QualityRow]:
    """The rows at the longest prefix: the hardest and the closest to real use."""
    rows = quality_rows(report)
    longest = max((row.prefix for row in rows), default=0)
    return [row for row in rows if row.prefix == longest]


def pareto(rows: Iterable[QualityRow]) -> list[QualityRow]:
    """The rows that no other row beats in both bits and KL, by rising bits."""
    front: list[QualityRow] = []
    for row in sorted((row for row in rows if not row.is_floor), key=lambda row: (row.bits, row.kl.value)):
        if not front or row.kl.value < front[-1].kl.value:
            front.append(row)
    return front


def ops_rows(report: Report) -> list[OpsRow]:
    return [row for stage in stages_of(report, OpsStage) for row in stage.rows]


def speed_rows(report: Report) -> list[SpeedRow]:
    order = pair_order(report)
    phases = {"prefill": 0, "decode": 1, "end-to-end": 2}
    rows = [row for stage in stages_of(report, SpeedStage) for row in stage.rows]
    return sorted(rows, key=lambda row: (phases[row.phase], row.depth, order(row.pair)))
