"""The end of a run: what its stages together say of each pair, and which pair to take for which memory. Pure."""

from __future__ import annotations

from tqforge.core.pair import Pair
from tqforge.report.judge import budget, pair_levels, select
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import PlanStage


def advise(report: Report) -> Report:
    """The report with a verdict per pair, and with recommendations where there is a plan."""
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
    grant = budget.Grant(memory=machine.memory, mac_gpu=mac, working_set=plan.working_set)
    budgets = plan.budgets or budget.default_budgets(rows, grant)
    found = tuple(budget.recommend(rows, verdicts, closeness, one, grant) for one in budgets)
    return plan.model_copy(update={"recommendations": found})
