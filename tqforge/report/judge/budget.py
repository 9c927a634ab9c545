"""Which pair for which memory: the closest to f16 among the safe pairs that fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tqforge.core.pair import F16, Pair
from tqforge.report.judge import pair_levels, select
from tqforge.report.judge.thresholds import ELSEWHERE, MAC_BOUND, MAC_LARGE, MAC_SMALL
from tqforge.report.schema.base import Choice, PairLevel
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import MemoryNeed, PairVerdict, PlanRow, Recommendation
from tqforge.report.schema.stages import PlanStage

Verdicts = Mapping[Pair, PairVerdict]


@dataclass(frozen=True, kw_only=True)
class MemoryBudget:
    """The memory that a machine grants llama.cpp. `working_set` is what its GPU driver reports."""

    memory: int
    mac_gpu: bool = False
    working_set: int | None = None

    def usable(self, budget: int) -> int:
        """Return what is usable of a budget: the driver's figure for this machine's own memory."""
        if self.working_set and abs(budget - self.memory) < self.memory // 16:
            return self.working_set
        return int(budget * self._share(budget))

    def asked(self, usable: int) -> int:
        """Return the budget that grants so much, rounded up to three digits."""
        return readable(math.ceil(usable / self._share(usable)))

    def _share(self, budget: int) -> float:
        if not self.mac_gpu:
            return ELSEWHERE
        return MAC_LARGE if budget >= MAC_BOUND else MAC_SMALL


def readable(size: int) -> int:
    """Round up to three digits of the unit: 1,003,500,000 is 958 MiB."""
    unit = 1 << (10 * max(0, int(math.log2(max(size, 1)) // 10)))
    step = unit // 100 or 1 if size < 10 * unit else unit // 10 or 1 if size < 100 * unit else unit
    return -(-size // step) * step


def need(row: PlanRow) -> MemoryNeed:
    """Return the measured need, else the planned one."""
    return row.measured or row.planned


def advise(report: Report) -> Report:
    """Add a verdict per pair, and recommendations where there is a plan."""
    verdicts = tuple(pair_levels.judge(report))
    stages = tuple(_advised(stage, report) if isinstance(stage, PlanStage) else stage for stage in report.stages)
    return report.model_copy(update={"verdicts": verdicts, "stages": stages})


def _advised(plan: PlanStage, report: Report) -> PlanStage:
    rows = [row for row in plan.rows if row.n_ctx == plan.n_ctx]
    if not rows:
        return plan
    verdicts = {one.pair: one for one in pair_levels.judge(report) if not one.unrotated}
    hardest: dict[Pair, float] = {}
    for row in select.quality_rows(report):
        if not (row.is_floor or row.unrotated):
            hardest[row.pair] = max(row.kl.value, hardest.get(row.pair, 0.0))
    closeness = sorted(hardest, key=lambda pair: hardest[pair])
    machine = report.machine
    mac = machine.system == "Darwin" and bool(report.settings and report.settings.gpu_layers)
    memory = MemoryBudget(memory=machine.memory, mac_gpu=mac, working_set=plan.working_set)
    budgets = plan.budgets or default_budgets(rows, memory)
    found = tuple(recommend(rows, verdicts, closeness, one, memory) for one in budgets)
    return plan.model_copy(update={"recommendations": found})


def default_budgets(rows: Sequence[PlanRow], memory: MemoryBudget) -> tuple[int, ...]:
    """Return this machine's memory, and the least in which the middle and the smallest pair fit."""
    totals = sorted({need(row).total for row in rows})
    if not totals:
        return (memory.memory,)
    below = {memory.asked(totals[len(totals) // 2]), memory.asked(totals[0])}
    return tuple(sorted({memory.memory, *(budget for budget in below if budget < memory.memory)}, reverse=True))


def recommend(
    rows: Sequence[PlanRow], verdicts: Verdicts, closeness: Sequence[Pair], budget: int, memory: MemoryBudget
) -> Recommendation:
    """Choose a pair. `rows` are of one length, `closeness` orders the measured pairs."""
    usable = memory.usable(budget)
    totals = {row.pair: need(row).total for row in rows}
    order = [pair for pair in (F16, *closeness) if pair in totals]
    safe = [pair for pair in order if pair == F16 or verdicts[pair].level is PairLevel.SAFE]
    fits = [pair for pair in safe if totals[pair] <= usable]
    other = [verdicts[pair] for pair in totals if pair in verdicts and pair not in safe]
    made = Recommendation(budget=budget, usable=usable, n_ctx=rows[0].n_ctx if rows else 0, outcome=Choice.NOT_MEASURED)
    if not closeness:
        return made
    if not fits:
        smallest = min(safe, key=lambda pair: totals[pair])
        unsafe = tuple(one for one in other if totals[one.pair] <= usable)
        changes = {"smallest": smallest, "smallest_need": totals[smallest], "unsafe": unsafe}
        return made.model_copy(update={"outcome": Choice.TOO_SMALL, **changes})
    pair, closer = fits[0], tuple(safe[: safe.index(fits[0])])
    return made.model_copy(
        update={
            "outcome": Choice.REFERENCE if pair == F16 else Choice.FITS,
            "pair": pair,
            "need": totals[pair],
            "measured": next(row for row in rows if row.pair == pair).measured is not None,
            "verdict": verdicts.get(pair),
            "closer": closer,
            "closer_need": min((totals[one] for one in closer), default=None),
            "unsafe": tuple(one for one in other if totals[one.pair] < totals[pair]),
        }
    )
