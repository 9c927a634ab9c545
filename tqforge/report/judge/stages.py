"""The rules that turn the rows of a stage into sentences, each with whether it is good news. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tqforge.core.pair import F16, Pair
from tqforge.report import fmt
from tqforge.report.judge import needles, select
from tqforge.report.schema.base import Check, Interval, StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import DeviceRow, MemoryRow, SpeedRow
from tqforge.report.schema.stages import CheckStage, DeviceStage, OpsStage, SpeedStage

Judged = tuple[bool, str]

#: A rate below this share of f16's in the same run is no normal cost.
SLOW = 0.5


def checks(stage: CheckStage) -> Iterator[Judged]:
    """How many held, and each that did not."""
    for check in stage.checks:
        if check.status in (StageStatus.FAILED, StageStatus.ERROR):
            yield False, _bad_check(check)
    passed = [check for check in stage.checks if check.status is StageStatus.PASSED]
    if passed:
        cases = sum(check.cases or 0 for check in passed)
        detail = f" ({fmt.plural(cases, 'case')})" if cases else ""
        yield True, f"{len(passed)} of {fmt.plural(len(stage.checks), 'check')} held{detail}."


def _bad_check(check: Check) -> str:
    parts = [f"{fmt.line(check.name)} {fmt.STATUS_WORD[check.status]}."]
    if check.observed:
        parts.append(f"Expected {fmt.line(check.expected, 120)}, saw {fmt.line(check.observed, 120)}.")
    return " ".join((*parts, fmt.ending(fmt.line(check.reason)))).strip()


def ops(stage: OpsStage) -> Iterator[Judged]:
    """Cases per backend; a backend without a case shows nothing."""
    for backend in dict.fromkeys(row.backend for row in stage.rows):
        rows = [row for row in stage.rows if row.backend == backend]
        passed, failed = sum(row.passed for row in rows), sum(row.failed for row in rows)
        unsupported = sum(row.unsupported for row in rows)
        aside = f" {fmt.plural(unsupported, 'case')} refused as unsupported." if unsupported else ""
        name = fmt.line(backend)
        if failed:
            bad = fmt.listing(fmt.line(row.op) for row in rows if row.failed)
            yield (
                False,
                f"{name}: {fmt.plural(failed, 'case')} of {fmt.count(passed + failed)} wrong ({bad}).{aside}",
            )
        elif passed:
            agree = f"all {fmt.count(passed)} cases agree" if passed > 1 else "its only case agrees"
            yield True, f"{name}: {agree} with the reference.{aside}"
        else:
            yield False, f"{name}: not a single case ran.{aside}"


def device(report: Report) -> Iterator[Judged]:
    """How far the device is from the CPU, pair by pair, beside the floor; the stage says what falls short."""
    for stage in select.stages_of(report, DeviceStage):
        floor = f", floor {fmt.kl(stage.floor)}" if fmt.known(stage.floor) else ""
        for row in stage.rows:
            ran = "" if row.dispatches is None else f"; {fmt.count(row.dispatches)} dispatches"
            far = row.bar is not None and row.kl_same is not None and not row.kl_same.value <= row.bar
            good = not far and not row.strays and row.dispatches != 0
            what = f"{row.pair}: KL(CPU || {fmt.line(stage.device)}) {_distances(row, floor)}"
            yield good, f"{what}; {_parting(row)}{ran}."


def _distances(row: DeviceRow, floor: str) -> str:
    own = f", the CPU from itself {fmt.kl(row.kl_cpu.value)}" if row.kl_cpu else ""
    free = f"{fmt.kl(row.kl.value)} ({fmt.kl_range(row.kl)}{floor}{own})"
    if row.kl_same is None:
        return free
    wrote = ""
    if row.error_device is not None and row.error_cpu is not None:
        wrote = f" (written with an error of {fmt.figure(row.error_device)}, CPU {fmt.figure(row.error_cpu)})"
    return f"{fmt.kl(row.kl_same.value)} after the same rows{wrote}, each with its own {free}"


def _parting(row: DeviceRow) -> str:
    if row.parted is None:
        return "the greedy texts are the same"
    gaps = f"by {fmt.figure(row.gap_cpu)} and {fmt.figure(row.gap_device)} logits"
    return f"the greedy texts part at token {row.parted + 1}, {gaps}"


def memory(report: Report) -> Iterator[Judged]:
    """Measured beside formula for every pair, and how much smaller than f16 in the same run."""
    rows = select.memory_rows(report)
    for row in rows:
        if not select.matches(row):
            yield False, _memory_off(row)
    longest = max((row.n_ctx for row in rows), default=0)
    reference = next((row for row in rows if row.pair == F16 and row.n_ctx == longest), None)
    exact = [row for row in rows if select.matches(row)]
    ours = [row for row in exact if row.pair.has_tq3_0 and row.n_ctx == longest]
    for row in ours:
        if not row.pair.is_mixed:
            share = select.block_words(row.k_measured + row.v_measured, row.k_values + row.v_values)
            yield True, f"{row.pair}: K and V buffers are exactly {share} bytes per value ({_smaller(row, reference)})."
    mixed = [f"{row.pair} ({_smaller(row, reference)})" for row in ours if row.pair.is_mixed]
    if mixed:
        yield True, f"As large as their formula to the byte: {fmt.listing(mixed)}."
    if rest := len(exact) - len(ours):
        yield (
            True,
            f"{fmt.plural(rest, 'further row')} (other pairs and lengths), each as its formula to the byte.",
        )


def _smaller(row: MemoryRow, reference: MemoryRow | None) -> str:
    text = f"{fmt.bits(select.measured_bits(row))} bits"
    own = row.k_measured + row.v_measured
    if reference and own:
        text += f", {fmt.times((reference.k_measured + reference.v_measured) / own, 2)} smaller than f16 in this run"
    return text


def _memory_off(row: MemoryRow) -> str:
    sides = (("K", row.k_measured - row.k_formula, row.k_formula), ("V", row.v_measured - row.v_formula, row.v_formula))
    off = [
        f"the {side} buffer has {abs(gap):,} bytes {'more' if gap > 0 else 'less'} than its formula's {due:,}"
        for side, gap, due in sides
        if gap
    ]
    return f"{row.pair} at {fmt.count(row.n_ctx)} tokens: {fmt.listing(off)}."


def needle(report: Report) -> Iterator[Judged]:
    """Needles found per pair, and what the control without a needle says of the test itself."""
    charts = needles.needle_maps(report)
    for chart in charts:
        if chart.must_miss:
            yield from _no_needle(chart)
        elif chart.is_reference:
            yield _control(chart)
        elif chart.pair.has_tq3_0:
            yield _all_found(chart.total), _needle_pair(report, chart)
    stock = [c for c in charts if not (c.must_miss or c.is_reference or c.pair.has_tq3_0)]
    if stock:
        counts = fmt.listing(f"{c.pair} {c.total.hits} of {c.total.n}" for c in stock)
        yield all(_all_found(c.total) for c in stock), f"Beside them, stock pairs found: {counts}."


def _all_found(total: needles.Tally) -> bool:
    return total.n > 0 and total.hits == total.n and not total.errors


def _control(chart: needles.NeedleMap) -> Judged:
    """What f16 misses is no fault of a cache type; a control that finds nothing makes the test worthless."""
    total, name = chart.total, str(chart.pair)
    text = f"{name} (the control) found {total.hits} of {fmt.plural(total.n, 'needle')}"
    if not total.hits or total.errors:
        return False, f"{text}{_aside(total)}: the other pairs cannot be judged where it failed."
    if total.hits < total.n or total.inconclusive:
        return True, f"{text}; the other pairs are judged on these alone."
    return True, f"{text}."


def _no_needle(chart: needles.NeedleMap) -> Iterator[Judged]:
    total = chart.total
    if lucky := total.hits + total.partial:
        yield False, f"Without a needle {chart.pair} still named {lucky} of {total.n}: the question can be guessed."
    elif total.n:
        yield True, f"Without a needle nothing was found ({chart.pair}, {total.n} asked): the answers are not guessed."


def _needle_pair(report: Report, chart: needles.NeedleMap) -> str:
    total, pair, tail = chart.total, str(chart.pair), _aside(chart.total)
    if not total.n:
        return f"{pair}: none of {fmt.plural(total.total, 'needle cell')} could be judged{tail}."
    summary = needles.needle_summary(report, chart.pair)
    rate = summary.rate if summary and summary.n == total.n else None
    span = f", 95 % interval {fmt.percent_range(rate)}" if rate else ""
    share = fmt.percent(total.hits / total.n)
    return f"{pair} found {total.hits} of {fmt.plural(total.n, 'needle')} ({share}{span}){tail}."


def _aside(total: needles.Tally) -> str:
    aside = [f"{total.partial} found in part"] if total.partial else []
    if total.inconclusive:
        aside.append(f"{total.inconclusive} inconclusive because f16 itself missed")
    if total.errors:
        aside.append(fmt.plural(total.errors, "error"))
    return f"; {fmt.listing(aside)}" if aside else ""


def speed(report: Report) -> Iterator[Judged]:
    """What the stage suspects, the aims that were missed, and the share of f16's rate per pair and phase."""
    yield from _aims(report)
    shares = [(row, row.ratio_f16.value) for row in select.speed_rows(report) if row.ratio_f16 and row.pair != F16]
    for pair in dict.fromkeys(row.pair for row, _ in shares):
        yield from _suspicions([row for row, _ in shares if row.pair == pair])
    for pair in dict.fromkeys(row.pair for row, _ in shares if row.pair.has_tq3_0):
        own = [(row.phase, share) for row, share in shares if row.pair == pair]
        if min(share for _, share in own) >= SLOW:
            phases = dict.fromkeys(phase for phase, _ in own)
            spans = fmt.listing(f"{_span([share for p, share in own if p == phase])} in {phase}" for phase in phases)
            yield True, f"{pair} runs at {spans}, as a share of f16's rate in the same run."


def _suspicions(rows: list[SpeedRow]) -> Iterator[Judged]:
    """One sentence for f16 and one for the neighbour of a pair, with every place where it is far behind."""
    for other in (F16, rows[0].neighbour):
        slow = [(row, ratio.value) for row in rows if (ratio := _against(row, other)) and ratio.value < SLOW]
        if slow:
            phases = dict.fromkeys(row.phase for row, _ in slow)
            depths = {p: fmt.listing(fmt.count(row.depth) for row, _ in slow if row.phase == p) for p in phases}
            places = ", ".join(f"{phase} at depth {depths[phase]}" for phase in phases)
            name = "f16" if other == F16 else str(other)
            share = _span([value for _, value in slow])
            yield (
                False,
                f"{rows[0].pair}: {share} of {name}'s rate in {places}. A fall-back is suspected.",
            )
        if other == rows[0].neighbour:
            return


def _against(row: SpeedRow, other: Pair | None) -> Interval | None:
    return row.ratio_f16 if other == F16 else row.ratio_neighbour


def _aims(report: Report) -> Iterator[Judged]:
    """Comparisons with an aim; one that the spread leaves open is told as neither met nor missed."""
    for stage in select.stages_of(report, SpeedStage):
        for one in stage.ratios:
            state = select.standing(one)
            if one.bar is None or not state:
                continue
            aim = f"aim {one.bar:.2f}, {fmt.plural(one.rounds, 'round')}: {state}"
            span = f"{one.ratio.value:.2f} times ({one.ratio.low:.2f} to {one.ratio.high:.2f})"
            place = f"{one.pair}, {one.phase} at depth {fmt.count(one.depth)}"
            build = f" of {fmt.line(one.build)}" if one.build else ""
            loud = ", on a machine that was not quiet" if stage.noise else ""
            yield state == "met", f"{place}: {span} the rate of {one.against}{build}{loud}; {aim}."


def _span(shares: list[float]) -> str:
    low, high = fmt.percent(min(shares)), fmt.percent(max(shares))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"
