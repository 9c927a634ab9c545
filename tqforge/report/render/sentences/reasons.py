"""Why a stage has its status, and how a run ended: the sentences that are recorded and shown."""

from __future__ import annotations

from collections.abc import Iterable

from tqforge.report import fmt
from tqforge.report.judge import facts
from tqforge.report.judge import reasons as rules
from tqforge.report.judge.facts import Fact
from tqforge.report.judge.reasons import DeviceFault, DeviceProblem, Missing
from tqforge.report.render.sentences import pairs
from tqforge.report.render.sentences.facts import NO_REASON, say
from tqforge.report.schema.base import Check, StageStatus
from tqforge.report.schema.rows import OpsRow
from tqforge.report.schema.stages import Stage

#: Failed runs of ops that are named before the rest is counted.
_SHOWN = 3


def sentence(fact: Fact) -> str:
    """Put any fact into words."""
    return say(fact)


def reasons(found: Iterable[Fact]) -> str:
    """Return the reasons of a status as sentences."""
    return " ".join(map(say, found))


@say.register
def _(_fact: rules.NothingMeasured) -> str:
    return "Nothing was measured."


@say.register
def _(fact: rules.ChecksFailed) -> str:
    return f"{'; '.join(map(_check, fact.checks))}."


def _check(check: Check) -> str:
    return f"{check.name}: {check.observed or check.reason}"


@say.register
def _(fact: rules.OpsFailed) -> str:
    shown = "; ".join(f"{row.backend}, {row.op}: {row.note or _counts(row)}" for row in fact.rows[:_SHOWN])
    more = f"; and {len(fact.rows) - _SHOWN} more" if len(fact.rows) > _SHOWN else ""
    return f"{shown}{more}."


def _counts(row: OpsRow) -> str:
    return f"{row.passed} passed, {row.failed} failed, {row.unsupported} not supported"


@say.register
def _(fact: rules.NoDevice) -> str:
    return f"No Metal kernel ran: {fact.reason}; the CPU part is recorded."


@say.register
def _(fact: rules.DeviceFailed) -> str:
    return f"{fact.pair}: {'; '.join(map(_problem, fact.problems))}."


def _problem(problem: DeviceProblem) -> str:
    where, seen, other = problem.where, f"{problem.seen:.2g}", f"{problem.other:.2g}"
    return {
        DeviceFault.REPORTED: where,
        DeviceFault.CPU_STRAYED: f"the CPU's own run had {where}",
        DeviceFault.IDLE: "no kernel of cache writes or attention was dispatched",
        DeviceFault.STRAYED: f"left the device: {where}",
        DeviceFault.READS: f"KL(CPU || device) {seen} on the same rows is above {other}",
        DeviceFault.WRITES: f"error of the {where or 'K and V'} rows it wrote is {seen}, of the CPU's {other}",
        DeviceFault.FAR_FROM_F16: f"KL from f16 is {seen} on the device, {other} on the CPU",
    }[problem.fault]


@say.register
def _(fact: rules.DeviceOpen) -> str:
    return {
        Missing.FLOOR: "f16/f16 was not measured, so nothing can be compared with it.",
        Missing.PAIRS: "No pair was measured besides f16/f16.",
        Missing.SAME_ROWS: f"Not compared on the same rows: {', '.join(map(str, fact.pairs))}.",
    }[fact.missing]


@say.register
def _(fact: rules.NeedlesGuessed) -> str:
    return f"Without a needle {fmt.plural(fact.answers, 'answer')} held a fact."


@say.register
def _(fact: rules.NeedleErrors) -> str:
    return f"Errors with {', '.join(map(str, fact.pairs))}."


@say.register
def _(fact: rules.NeedlesLost) -> str:
    return f"{fact.summary.pair} finds {fact.summary.hits} of {fact.summary.n} needles that f16 finds."


@say.register
def _(_fact: rules.ReferenceFindsNothing) -> str:
    return "f16 itself answers none of the questions: choose shorter lengths or another model."


@say.register
def _(fact: rules.ModelBroken) -> str:
    shown = (f"{pairs.name(row)} (KL {row.kl.value:.2f}, top-1 {row.top1.value:.0%})" for row in fact.rows)
    return f"Breaks this model: {', '.join(shown)}."


@say.register
def _(fact: rules.FallbackSuspected) -> str:
    shown = ", ".join(f"{row.pair} ({row.phase} at {row.depth})" for row in fact.rows)
    loud = ", but the machine was busy" if fact.noisy else ""
    return f"Less than half the rate of f16 or of the neighbour, a fallback is suspected{loud}: {shown}."


@say.register
def _(fact: rules.PlanOff) -> str:
    return f"{fact.row.pair} at {fact.row.n_ctx} tokens: the planned cache is off by {fmt.count(fact.by)} bytes."


@say.register
def _(fact: facts.PairLevels) -> str:
    return pairs.levels(fact.verdicts, fact.reach)


@say.register
def _(fact: facts.Recommended) -> str:
    return pairs.recommendation(fact.choice)


@say.register
def _(fact: facts.NotReached) -> str:
    return f"The run ended before {fmt.listing(fact.stages)}."


@say.register
def _(fact: facts.NotAsked) -> str:
    return f"Not part of this run: {fmt.listing(fact.stages)}."


@say.register
def _(fact: facts.StageEnded) -> str:
    stage, why = fact.stage, _why(fact.stage)
    match stage.status:
        case StageStatus.ERROR:
            return f"Ended in an error after {fmt.plural(fact.observations, 'observation')}. {why}".strip()
        case StageStatus.PASSED if not fact.observations:
            return "Passed without any observation, which proves nothing."
        case StageStatus.INCONCLUSIVE:
            return f"Inconclusive. {why or NO_REASON}"
    return why or NO_REASON


def _why(stage: Stage) -> str:
    """Return reason, place and remedy, each once: the error adds what the stage itself does not say."""
    parts = [stage.reason, stage.remedy]
    if stage.error:
        place = f"Where: {stage.error.where}" if stage.error.where else ""
        parts = [stage.reason or stage.error.what, place, stage.remedy or stage.error.remedy]
    return " ".join(dict.fromkeys(fmt.sentence(fmt.ending(fmt.line(part))) for part in parts if part.strip()))
