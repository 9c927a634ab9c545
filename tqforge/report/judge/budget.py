"""Which pair for which memory: what fits, and of it what is safe. Pure: tested as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tqforge.core.pair import F16, Pair
from tqforge.report import fmt
from tqforge.report.schema.rows import MemoryNeed, PairVerdict, PlanRow, Recommendation

GIB = 1 << 30
#: Of the memory of a Mac that its GPU gets: the driver's own limit (recommendedMaxWorkingSetSize) by size of memory.
MAC_SMALL, MAC_LARGE, MAC_BOUND = 2 / 3, 3 / 4, 36 * GIB
#: Elsewhere the system and other programs keep a fifth.
ELSEWHERE = 0.8


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What a machine gives llama.cpp of its memory. `working_set` is the GPU driver's word on this very machine."""

    memory: int
    mac_gpu: bool = False
    working_set: int | None = None

    def usable(self, budget: int) -> int:
        if self.working_set and abs(budget - self.memory) < self.memory // 16:
            return self.working_set
        return int(budget * self._share(budget))

    def asked(self, usable: int) -> int:
        """The budget that grants so much, rounded up to three digits."""
        return readable(math.ceil(usable / self._share(usable)))

    def _share(self, budget: int) -> float:
        if not self.mac_gpu:
            return ELSEWHERE
        return MAC_LARGE if budget >= MAC_BOUND else MAC_SMALL


def readable(size: int) -> int:
    """Rounded up to three digits of its unit: 1,003,500,000 is 958 MiB."""
    unit = 1 << (10 * max(0, int(math.log2(max(size, 1)) // 10)))
    step = unit // 100 or 1 if size < 10 * unit else unit // 10 or 1 if size < 100 * unit else unit
    return -(-size // step) * step


def need(row: PlanRow) -> MemoryNeed:
    """As measured where it was, else as planned."""
    return row.measured or row.planned


def default_budgets(rows: Sequence[PlanRow], grant: Grant) -> tuple[int, ...]:
    """This machine's memory, and the least in which the middle and the smallest pair fit: where the choice changes."""
    totals = sorted({need(row).total for row in rows})
    if not totals:
        return (grant.memory,)
    below = {grant.asked(totals[len(totals) // 2]), grant.asked(totals[0])}
    return tuple(sorted({grant.memory, *(budget for budget in below if budget < grant.memory)}, reverse=True))


def recommend(
    rows: Sequence[PlanRow],
    verdicts: Mapping[Pair, PairVerdict],
    closeness: Sequence[Pair],
    budget: int,
    grant: Grant,
) -> Recommendation:
    """The closest to f16 among the safe pairs that fit. `rows` are of one length, `closeness` orders measured pairs."""
    usable = grant.usable(budget)
    by_pair = {row.pair: row for row in rows}
    order = [pair for pair in (F16, *closeness) if pair in by_pair]
    safe = [pair for pair in order if pair == F16 or verdicts[pair].level == "safe"]
    fits = [pair for pair in safe if need(by_pair[pair]).total <= usable]
    n_ctx = rows[0].n_ctx if rows else 0
    made = Recommendation(budget=budget, usable=usable, n_ctx=n_ctx, pair=None, need=None)
    if not closeness:
        reason = "nothing is recommended without a measured quality: run the stages quality and needle as well"
        return made.model_copy(update={"reason": reason})
    if not fits:
        return made.model_copy(update={"reason": _none(by_pair, verdicts, safe, usable)})
    row = by_pair[fits[0]]
    changes = {"pair": row.pair, "need": need(row).total, "measured": row.measured is not None}
    return made.model_copy(update={**changes, "reason": _why(row.pair, by_pair, verdicts, safe, usable)})


def _why(
    pair: Pair, by_pair: Mapping[Pair, PlanRow], verdicts: Mapping[Pair, PairVerdict], safe: Sequence[Pair], usable: int
) -> str:
    closer = safe[: safe.index(pair)]
    if pair == F16:
        return "f16 itself fits, nothing is lost"
    parts = [f"safe on this model: {verdicts[pair].why}"]
    if not verdicts[pair].needles:
        parts.append("by its KL alone, no needles were tried")
    if closer:
        least = min(need(by_pair[one]).total for one in closer)
        what = f"what is closer to f16 ({fmt.listing(map(str, closer))}) needs {fmt.size(least)} or more"
        parts.append(f"{what}, {fmt.size(usable)} can be used")
    smaller = [one for one, row in by_pair.items() if one in verdicts and one not in safe
               and need(row).total < need(by_pair[pair]).total]  # fmt: skip
    if smaller:
        levels = fmt.listing(f"{one} ({verdicts[one].level})" for one in smaller)
        parts.append(f"smaller, but not safe here: {levels}")
    return "; ".join(parts)


def _none(
    by_pair: Mapping[Pair, PlanRow], verdicts: Mapping[Pair, PairVerdict], safe: Sequence[Pair], usable: int
) -> str:
    least = min(safe, key=lambda pair: need(by_pair[pair]).total)
    reason = f"the smallest safe pair, {least}, needs {fmt.size(need(by_pair[least]).total)}"
    unsafe = [
        f"{pair} ({verdicts[pair].level})"
        for pair, row in by_pair.items()
        if pair in verdicts and pair not in safe and need(row).total <= usable
    ]
    return f"{reason}; what fits is not safe here: {fmt.listing(unsafe)}" if unsafe else f"{reason}; nothing fits"
