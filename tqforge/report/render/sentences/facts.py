"""One sentence per fact about the rows of a stage."""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch

from tqforge.core.pair import F16
from tqforge.report import fmt
from tqforge.report.judge import facts, select
from tqforge.report.judge.facts import Beside, Fact
from tqforge.report.judge.needles import Tally
from tqforge.report.judge.thresholds import NOISY_SPREAD, QUIET_SHARE
from tqforge.report.render.sentences import pairs
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.rows import DeviceRow

NO_REASON = "No reason was recorded."


@singledispatch
def say(fact: Fact) -> str:
    """Put a fact into words."""
    raise TypeError(f"no sentence for {type(fact).__name__}")


@say.register
def _(fact: facts.ChecksPassed) -> str:
    detail = f" ({fmt.plural(fact.cases, 'case')})" if fact.cases else ""
    return f"{fact.passed} of {fmt.plural(fact.total, 'check')} passed{detail}."


@say.register
def _(fact: facts.CheckOpen) -> str:
    check, reason = fact.check, fmt.ending(fmt.line(fact.check.reason))
    if check.status is StageStatus.SKIPPED:
        return f"{fmt.line(check.name)}: {reason or NO_REASON}"
    if check.status is StageStatus.INCONCLUSIVE:
        return f"{fmt.line(check.name)} is inconclusive. {reason or NO_REASON}"
    parts = [f"{fmt.line(check.name)} {'failed' if check.status is StageStatus.FAILED else 'ended in an error'}."]
    if check.observed:
        parts.append(f"Expected {fmt.line(check.expected, 120)}, got {fmt.line(check.observed, 120)}.")
    return " ".join((*parts, reason)).strip()


@say.register
def _(fact: facts.OpsCounted) -> str:
    name, refused = fmt.line(fact.backend), ""
    if fact.unsupported:
        refused = f" {fmt.plural(fact.unsupported, 'case')} not supported."
    if fact.failed:
        wrong = fmt.listing(map(fmt.line, fact.wrong))
        total = fmt.count(fact.passed + fact.failed)
        return f"{name}: {fmt.plural(fact.failed, 'case')} of {total} failed ({wrong}).{refused}"
    if not fact.passed:
        return f"{name}: no case ran.{refused}"
    agree = f"all {fmt.count(fact.passed)} cases agree" if fact.passed > 1 else "its only case agrees"
    return f"{name}: {agree} with the reference.{refused}"


@say.register
def _(fact: facts.DeviceCompared) -> str:
    row = fact.row
    ran = "" if row.dispatches is None else f"; {fmt.count(row.dispatches)} dispatches"
    greedy = "the greedy texts are the same"
    if row.parted is not None:
        gaps = f"by {fmt.figure(row.gap_cpu)} and {fmt.figure(row.gap_device)} logits"
        greedy = f"the greedy texts differ from token {row.parted + 1}, {gaps}"
    return f"{row.pair}: KL(CPU || {fmt.line(fact.device)}) {_distances(row, fact.floor)}; {greedy}{ran}."


def _distances(row: DeviceRow, floor: float | None) -> str:
    noise = f", f16/f16 {fmt.kl(floor)}" if fmt.known(floor) else ""
    own = f", CPU against itself {fmt.kl(row.kl_cpu.value)}" if row.kl_cpu else ""
    free = f"{fmt.kl(row.kl.value)} ({fmt.kl_range(row.kl)}{noise}{own})"
    if row.kl_same is None:
        return free
    wrote = ""
    if row.error_device is not None and row.error_cpu is not None:
        wrote = f" (error of the rows {fmt.figure(row.error_device)}, CPU {fmt.figure(row.error_cpu)})"
    return f"{fmt.kl(row.kl_same.value)} on the same rows{wrote}, on its own rows {free}"


@say.register
def _(fact: facts.MemoryOff) -> str:
    row = fact.row
    sides = (("K", row.k_measured - row.k_formula, row.k_formula), ("V", row.v_measured - row.v_formula, row.v_formula))
    off = [
        f"the {side} buffer has {abs(gap):,} bytes {'more' if gap > 0 else 'less'} than the expected {due:,}"
        for side, gap, due in sides
        if gap
    ] or ["no values were measured"]
    return f"{row.pair} at {fmt.count(row.n_ctx)} tokens: {fmt.listing(off)}."


def _size(size: facts.CacheSize) -> str:
    text = f"{fmt.bits(size.bits)} bits"
    return f"{text}, {fmt.times(size.smaller, 2)} smaller than f16 in this run" if size.smaller else text


@say.register
def _(fact: facts.BytesPerValue) -> str:
    share = Fraction(32 * fact.bytes, fact.values) if fact.values else Fraction(0)
    words = f"{share.numerator}/32" if share.denominator == 1 else f"{float(share) / 32:.4f}"
    return f"{fact.size.pair}: K and V buffers are exactly {words} bytes per value ({_size(fact.size)})."


@say.register
def _(fact: facts.SizesExact) -> str:
    return f"Exactly the expected size: {fmt.listing(f'{size.pair} ({_size(size)})' for size in fact.sizes)}."


@say.register
def _(fact: facts.OtherSizesExact) -> str:
    return f"{fmt.plural(fact.rows, 'further row')} (other pairs and lengths) exactly of the expected size."


@say.register
def _(fact: facts.NeedlesFound) -> str:
    total, tail = fact.tally, _aside(fact.tally)
    if not total.n:
        return f"{fact.pair}: none of {fmt.plural(total.total, 'needle')} could be judged{tail}."
    span = f", 95% interval {fmt.percent_range(fact.rate)}" if fact.rate else ""
    share = fmt.percent(total.hits / total.n)
    return f"{fact.pair} found {total.hits} of {fmt.plural(total.n, 'needle')} ({share}{span}){tail}."


@say.register
def _(fact: facts.StockNeedles) -> str:
    counts = fmt.listing(f"{pair} {total.hits} of {total.n}" for pair, total in fact.found)
    return f"For comparison, stock pairs found: {counts}."


@say.register
def _(fact: facts.ReferenceNeedles) -> str:
    total = fact.tally
    text = f"{fact.pair} (the control) found {total.hits} of {fmt.plural(total.n, 'needle')}"
    if not total.hits or total.errors:
        return f"{text}{_aside(total)}: the other pairs cannot be judged where it failed."
    if total.hits < total.n or total.inconclusive:
        return f"{text}; the other pairs are judged on these only."
    return f"{text}."


@say.register
def _(fact: facts.NoNeedle) -> str:
    total = fact.tally
    if lucky := total.hits + total.partial:
        return f"Without a needle, {fact.pair} still found {lucky} of {total.n}: the questions can be guessed."
    return f"Without a needle, {fact.pair} found nothing in {total.n} tries: the answers are not guessed."


def _aside(total: Tally) -> str:
    aside = [f"{total.partial} partly found"] if total.partial else []
    if total.inconclusive:
        aside.append(f"{total.inconclusive} inconclusive because f16 itself missed")
    if total.errors:
        aside.append(fmt.plural(total.errors, "error"))
    return f"; {fmt.listing(aside)}" if aside else ""


@say.register
def _(fact: facts.Distance) -> str:
    row = fact.row
    if not fmt.known(row.kl.value):
        return f"{pairs.name(row)}: the KL divergence is not a number."
    text = f"{pairs.name(row)} is {pairs.band(row.kl)}: KL {fmt.kl(row.kl.value)} ({fmt.kl_range(row.kl)})"
    if fmt.known(row.top1.value):
        text += f", the same next token as f16 {fmt.percent(row.top1.value)} of the time"
    other = fact.larger
    if other is None:
        return f"{text}."
    name = f"{pairs.name(other)} at {fmt.bits(other.bits)} bits (KL {fmt.kl(other.kl.value)})"
    if fact.beside is Beside.HIGHER:
        return f"{text}; that is {fmt.times(row.kl.value / other.kl.value)} the KL of {name}."
    return f"{text}; that is {'closer than' if fact.beside is Beside.LOWER else 'not distinguishable from'} {name}."


@say.register
def _(fact: facts.BetterKeys) -> str:
    dear, cheap = fact.dear, fact.cheap
    gain = f"{fmt.times(cheap.kl.value / dear.kl.value)} lower than" if dear.kl.value > 0 else "far below"
    named = [f"{pairs.name(row)} ({fmt.bits(row.bits)} bits)" for row in (dear, cheap)]
    return f"Keys need more bits than values here: {named[0]} has a KL {gain} {named[1]}."


@say.register
def _(fact: facts.Slow) -> str:
    phases = dict.fromkeys(phase for phase, _ in fact.places)
    depths = {phase: fmt.listing(fmt.count(d) for p, d in fact.places if p == phase) for phase in phases}
    places = ", ".join(f"{phase} at depth {depths[phase]}" for phase in phases)
    name = "f16" if fact.against == F16 else str(fact.against)
    return f"{fact.pair}: {_span(fact.low, fact.high)} of the rate of {name} in {places}. A fallback is suspected."


@say.register
def _(fact: facts.RateShares) -> str:
    spans = fmt.listing(f"{_span(low, high)} in {phase}" for phase, low, high in fact.spans)
    return f"{fact.pair} runs at {spans} of the rate of f16 in the same run."


def _span(low: float, high: float) -> str:
    first, last = fmt.percent(low), fmt.percent(high)
    return first if first == last else f"{first.removesuffix('%')} to {last}"


@say.register
def _(fact: facts.TargetChecked) -> str:
    one = fact.ratio
    build = f" of {fmt.line(one.build)}" if one.build else ""
    span = f"{one.ratio.value:.2f} times ({one.ratio.low:.2f} to {one.ratio.high:.2f})"
    loud = ", on a busy machine" if fact.noisy else ""
    target = f"target {one.target:.2f}, {fmt.plural(one.rounds, 'round')}: {select.target_status(one)}"
    place = f"{one.pair}, {one.phase} at depth {fmt.count(one.depth)}"
    return f"{place}: {span} the rate of {one.against}{build}{loud}; {target}."


def noise(spread: float | None, share: float | None = None) -> str:
    """Say why the machine was not quiet; empty if it was."""
    seen = []
    if spread is not None and spread > NOISY_SPREAD:
        seen.append(f"repeated rates differ by {spread:.0%} from their median")
    if share is not None and share < QUIET_SHARE:
        seen.append(f"this run had {share:.0%} of the CPUs it asked for")
    if not seen:
        return ""
    return f"The machine was busy: {' and '.join(seen)}. Rates are low; ratios within a round are less affected."
