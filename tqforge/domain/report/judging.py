"""The rules that turn the rows of a stage into sentences, each with whether it is good news. Pure.

The bands of KL divergence are conventions of this report, chosen on models of 0.1 to 0.5 billion parameters where
needles and greedy answers were looked at beside them; they are printed with the report.
"""

from __future__ import annotations

from collections.abc import Iterator

from tqforge.domain.report import figures, words
from tqforge.domain.report.schema import (
    Check,
    CheckStage,
    MemoryRow,
    OpsStage,
    QualityRow,
    Report,
    Status,
)

Judged = tuple[bool, str]

CLOSE, CHANGED, BROKEN = 0.01, 0.05, 0.5
#: A rate below this share of f16's in the same run is no normal cost.
SLOW = 0.5


def band(kl: float) -> str:
    """How far a cache is from f16, in words."""
    if kl < CLOSE:
        return "hardly to be told from f16"
    if kl < CHANGED:
        return "close to f16"
    return (
        "clearly different from f16" if kl < BROKEN else "so different from f16 that the model is not itself any more"
    )


def checks(stage: CheckStage) -> Iterator[Judged]:
    """How many held, and each that did not."""
    for check in stage.checks:
        if check.status in (Status.FAILED, Status.ERROR):
            yield False, _bad_check(check)
    passed = [check for check in stage.checks if check.status is Status.PASSED]
    if passed:
        cases = sum(check.cases or 0 for check in passed)
        detail = f" ({words.plural(cases, 'case')})" if cases else ""
        yield True, f"{len(passed)} of {words.plural(len(stage.checks), 'check')} held{detail}."


def _bad_check(check: Check) -> str:
    parts = [f"{words.line(check.name)} {words.STATUS_WORD[check.status]}."]
    if check.observed:
        parts.append(f"Expected {words.line(check.expected, 120)}, saw {words.line(check.observed, 120)}.")
    return " ".join((*parts, words.ending(words.line(check.reason)))).strip()


def ops(stage: OpsStage) -> Iterator[Judged]:
    """Cases per backend; a backend without a case shows nothing."""
    for backend in dict.fromkeys(row.backend for row in stage.rows):
        rows = [row for row in stage.rows if row.backend == backend]
        passed, failed = sum(row.passed for row in rows), sum(row.failed for row in rows)
        unsupported = sum(row.unsupported for row in rows)
        aside = f" {words.plural(unsupported, 'case')} refused as unsupported." if unsupported else ""
        name = words.line(backend)
        if failed:
            bad = words.listing(words.line(row.op) for row in rows if row.failed)
            yield (
                False,
                f"{name}: {words.plural(failed, 'case')} of {words.count(passed + failed)} wrong ({bad}).{aside}",
            )
        elif passed:
            agree = f"all {words.count(passed)} cases agree" if passed > 1 else "its only case agrees"
            yield True, f"{name}: {agree} with the reference.{aside}"
        else:
            yield False, f"{name}: not a single case ran.{aside}"


def memory(report: Report) -> Iterator[Judged]:
    """Measured beside formula for every pair, and how much smaller than f16 in the same run."""
    rows = figures.memory_rows(report)
    for row in rows:
        if not figures.matches(row):
            yield False, _memory_off(row)
    longest = max((row.n_ctx for row in rows), default=0)
    reference = next((row for row in rows if row.pair == "f16/f16" and row.n_ctx == longest), None)
    exact = [row for row in rows if figures.matches(row)]
    ours = [row for row in exact if figures.is_ours(row.pair) and row.n_ctx == longest]
    for row in ours:
        if not figures.is_mixed(row.pair):
            share = figures.block_words(row.k_measured + row.v_measured, row.k_values + row.v_values)
            yield True, f"{row.pair}: K and V buffers are exactly {share} bytes per value ({_smaller(row, reference)})."
    mixed = [f"{row.pair} ({_smaller(row, reference)})" for row in ours if figures.is_mixed(row.pair)]
    if mixed:
        yield True, f"As large as their formula to the byte: {words.listing(mixed)}."
    if rest := len(exact) - len(ours):
        yield True, f"{words.plural(rest, 'further row')} (other pairs and lengths), each as its formula to the byte."


def _smaller(row: MemoryRow, reference: MemoryRow | None) -> str:
    text = f"{words.bits(figures.measured_bits(row))} bits"
    own = row.k_measured + row.v_measured
    if reference and own:
        text += f", {words.times((reference.k_measured + reference.v_measured) / own, 2)} smaller than f16 in this run"
    return text


def _memory_off(row: MemoryRow) -> str:
    sides = (("K", row.k_measured - row.k_formula, row.k_formula), ("V", row.v_measured - row.v_formula, row.v_formula))
    off = [
        f"the {side} buffer has {abs(gap):,} bytes {'more' if gap > 0 else 'less'} than its formula's {due:,}"
        for side, gap, due in sides
        if gap
    ]
    return f"{row.pair} at {words.count(row.n_ctx)} tokens: {words.listing(off)}."


def needle(report: Report) -> Iterator[Judged]:
    """Needles found per pair, and what the control without a needle says of the test itself."""
    charts = figures.needle_maps(report)
    for chart in charts:
        if chart.must_miss:
            yield from _no_needle(chart)
        elif chart.is_reference or figures.is_ours(chart.pair):
            yield _all_found(chart.total), _needle_pair(report, chart)
    stock = [c for c in charts if not (c.must_miss or c.is_reference or figures.is_ours(c.pair))]
    if stock:
        counts = words.listing(f"{words.line(c.pair)} {c.total.hits} of {c.total.n}" for c in stock)
        yield all(_all_found(c.total) for c in stock), f"Beside them, stock pairs found: {counts}."


def _all_found(total: figures.Tally) -> bool:
    return total.n > 0 and total.hits == total.n and not total.errors


def _no_needle(chart: figures.NeedleMap) -> Iterator[Judged]:
    total = chart.total
    if lucky := total.hits + total.partial:
        yield False, f"Without a needle {chart.pair} still named {lucky} of {total.n}: the question can be guessed."
    elif total.n:
        yield True, f"Without a needle nothing was found ({chart.pair}, {total.n} asked): the answers are not guessed."


def _needle_pair(report: Report, chart: figures.NeedleMap) -> str:
    total = chart.total
    aside = [f"{total.partial} found in part"] if total.partial else []
    if total.inconclusive:
        aside.append(f"{total.inconclusive} inconclusive because f16 itself missed")
    if total.errors:
        aside.append(words.plural(total.errors, "error"))
    tail = f"; {words.listing(aside)}" if aside else ""
    pair = words.line(chart.pair)
    if not total.n:
        return f"{pair}: none of {words.plural(total.total, 'needle cell')} could be judged{tail}."
    summary = figures.needle_summary(report, chart.pair)
    rate = summary.rate if summary and summary.n == total.n else None
    span = f", 95 % interval {words.percent_range(rate)}" if rate else ""
    share = words.percent(total.hits / total.n)
    role = " (the control)" if chart.is_reference else ""
    return f"{pair}{role} found {total.hits} of {words.plural(total.n, 'needle')} ({share}{span}){tail}."


def quality(report: Report) -> Iterator[Judged]:
    """How far each pair with our type, and each stock pair that is broken, is from f16."""
    rows = figures.main_quality_rows(report)
    for row in rows:
        if row.is_floor:
            continue
        if not words.known(row.kl.value):
            yield False, f"{quality_name(row)}: the KL divergence came out as no number."
        elif figures.is_ours(row.pair) or row.kl.value >= BROKEN:
            yield row.kl.value < CHANGED, _quality_row(row, rows)


def _quality_row(row: QualityRow, rows: list[QualityRow]) -> str:
    name = quality_name(row)
    agree = (
        f"the same next word as f16 {words.percent(row.top1.value)} of the time" if words.known(row.top1.value) else ""
    )
    text = f"{name} is {band(row.kl.value)}: KL {words.kl(row.kl.value)} ({words.kl_range(row.kl)})"
    text += f", {agree}" if agree else ""
    return f"{text}{_beside(row, rows)}."


def _beside(row: QualityRow, rows: list[QualityRow]) -> str:
    """The next larger stock pair, and whether the two can be told apart."""
    larger = [
        other for other in rows if not other.is_floor and not figures.is_ours(other.pair) and other.bits > row.bits
    ]
    if not larger or not figures.is_ours(row.pair):
        return ""
    other = min(larger, key=lambda other: (other.bits, other.kl.value))
    if not (words.known(other.kl.value) and other.kl.value > 0):
        return ""
    beside = f"{quality_name(other)} at {words.bits(other.bits)} bits (KL {words.kl(other.kl.value)})"
    if row.kl.low > other.kl.high:
        return f"; that is {words.times(row.kl.value / other.kl.value)} the KL of {beside}"
    if row.kl.high < other.kl.low:
        return f"; that is closer than {beside}"
    return f"; not to be told from {beside}"


def quality_name(row: QualityRow) -> str:
    return f"{words.line(row.pair)} [{words.line(row.rotation)}]" if row.rotation else words.line(row.pair)


def speed(report: Report) -> Iterator[Judged]:
    """A rate far below f16's in the same run is a suspected fall-back; the rest is one sentence per pair and phase."""
    shares = [
        (row, row.ratio_f16.value) for row in figures.speed_rows(report) if row.ratio_f16 and row.pair != "f16/f16"
    ]
    for row, share in shares:
        if share < SLOW:
            place = f"{words.line(row.pair)}, {row.phase} at depth {words.count(row.depth)}"
            yield False, f"{place}: {words.percent(share)} of f16's rate. A fall-back is suspected."
    for pair in dict.fromkeys(row.pair for row, _ in shares if figures.is_ours(row.pair)):
        own = [(row.phase, share) for row, share in shares if row.pair == pair]
        if min(share for _, share in own) >= SLOW:
            phases = dict.fromkeys(phase for phase, _ in own)
            spans = words.listing(f"{_span([share for p, share in own if p == phase])} in {phase}" for phase in phases)
            yield True, f"{words.line(pair)} runs at {spans}, as a share of f16's rate in the same run."


def _span(shares: list[float]) -> str:
    low, high = words.percent(min(shares)), words.percent(max(shares))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def advice(report: Report) -> Iterator[tuple[str, str]]:
    """Better keys than values, only where the intervals say that it pays: the cheapest close pair, else the closest."""
    rows = [row for row in figures.main_quality_rows(report) if not row.is_floor]
    for twin in rows:
        k, _, v = twin.pair.partition("/")
        better = [row for row in rows if k == v and _spends_on_keys(row, twin)]
        if not better:
            continue
        close = [row for row in better if row.kl.value < CHANGED]
        best = min(close, key=lambda row: row.bits) if close else min(better, key=lambda row: row.kl.value)
        gain = f"{words.times(twin.kl.value / best.kl.value)} lower than" if best.kl.value > 0 else "far below"
        dear, cheap = (f"{quality_name(row)} ({words.bits(row.bits)} bits)" for row in (best, twin))
        yield "quality", f"Keys deserve more bits than values here: {dear} has a KL {gain} {cheap}."


def _spends_on_keys(row: QualityRow, twin: QualityRow) -> bool:
    """Same V type and rotation, a larger K type, and intervals that do not touch."""
    k, _, v = row.pair.partition("/")
    same = k != v and f"{v}/{v}" == twin.pair and row.rotation == twin.rotation
    return same and row.bits > twin.bits and 0 < row.kl.high < twin.kl.low
