"""Rules of the stages: what their rows show, as facts, each with whether it is good news."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch

from tqforge.core.pair import F16, Pair
from tqforge.report import fmt
from tqforge.report.judge import facts, needles, select
from tqforge.report.judge.facts import Beside, BetterKeys, Distance, Fact
from tqforge.report.judge.thresholds import CHANGED, SLOW, by_kl, is_noisy
from tqforge.report.schema.base import Interval, PairLevel, StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import DeviceRow, MemoryRow, QualityRow, SpeedRow
from tqforge.report.schema.stages import (
    CheckStage,
    DeviceStage,
    MemoryStage,
    NeedleStage,
    OpsStage,
    PlanStage,
    QualityStage,
    SpeedStage,
    Stage,
)

Judged = tuple[bool, Fact]


@singledispatch
def show(_stage: Stage, _report: Report) -> Iterator[Judged]:
    """Return the facts of a stage by the type of its record, each with whether it is good news."""
    raise TypeError(f"no rule for {type(_stage).__name__}")


@show.register
def _(_stage: PlanStage, _report: Report) -> Iterator[Judged]:
    return iter(())  # a plan has only recommendations


@show.register
def _(stage: CheckStage, _report: Report) -> Iterator[Judged]:
    for check in stage.checks:
        if check.status in (StageStatus.FAILED, StageStatus.ERROR):
            yield False, facts.CheckOpen(check)
    passed = [check for check in stage.checks if check.status is StageStatus.PASSED]
    if passed:
        yield True, facts.ChecksPassed(len(passed), len(stage.checks), sum(check.cases or 0 for check in passed))


@show.register
def _(stage: OpsStage, _report: Report) -> Iterator[Judged]:
    for backend in dict.fromkeys(row.backend for row in stage.rows):
        rows = [row for row in stage.rows if row.backend == backend]
        found = facts.OpsCounted(
            backend,
            passed=sum(row.passed for row in rows),
            failed=sum(row.failed for row in rows),
            unsupported=sum(row.unsupported for row in rows),
            wrong=tuple(row.op for row in rows if row.failed),
        )
        yield found.passed > 0 and not found.failed, found


@show.register
def _(stage: DeviceStage, _report: Report) -> Iterator[Judged]:
    for row in stage.rows:
        yield _agrees(row), facts.DeviceCompared(row, stage.device, stage.floor)


def _agrees(row: DeviceRow) -> bool:
    far = row.limit is not None and row.kl_same is not None and not row.kl_same.value <= row.limit
    return not far and not row.strays and row.dispatches != 0


@show.register
def _(_stage: MemoryStage, report: Report) -> Iterator[Judged]:
    rows = select.memory_rows(report)
    for row in rows:
        if not select.matches(row):
            yield False, facts.MemoryOff(row)
    longest = max((row.n_ctx for row in rows), default=0)
    reference = next((row for row in rows if row.pair == F16 and row.n_ctx == longest), None)
    exact = [row for row in rows if select.matches(row)]
    ours = [row for row in exact if row.pair.has_tq3_0 and row.n_ctx == longest]
    for row in ours:
        if not row.pair.is_mixed:
            held = row.k_measured + row.v_measured, row.k_values + row.v_values
            yield True, facts.BytesPerValue(_size(row, reference), *held)
    if mixed := tuple(_size(row, reference) for row in ours if row.pair.is_mixed):
        yield True, facts.SizesExact(mixed)
    if rest := len(exact) - len(ours):
        yield True, facts.OtherSizesExact(rest)


def _size(row: MemoryRow, reference: MemoryRow | None) -> facts.CacheSize:
    own = row.k_measured + row.v_measured
    smaller = (reference.k_measured + reference.v_measured) / own if reference and own else None
    return facts.CacheSize(row.pair, select.measured_bits(row), smaller)


@show.register
def _(_stage: NeedleStage, report: Report) -> Iterator[Judged]:
    charts = needles.needle_maps(report)
    for chart in charts:
        total = chart.total
        if chart.must_miss:
            if total.n:
                yield not (total.hits or total.partial), facts.NoNeedle(chart.pair, total)
        elif chart.is_reference:  # what f16 misses is not the fault of a cache type
            yield total.hits > 0 and not total.errors, facts.ReferenceNeedles(chart.pair, total)
        elif chart.pair.has_tq3_0:
            summary = needles.needle_summary(report, chart.pair)
            rate = summary.rate if summary and summary.n == total.n else None
            yield _all_found(total), facts.NeedlesFound(chart.pair, total, rate)
    stock = [c for c in charts if not (c.must_miss or c.is_reference or c.pair.has_tq3_0)]
    if stock:
        good = all(_all_found(c.total) for c in stock)
        yield good, facts.StockNeedles(tuple((c.pair, c.total) for c in stock))


def _all_found(total: needles.Tally) -> bool:
    return total.n > 0 and total.hits == total.n and not total.errors


@show.register
def _(_stage: QualityStage, report: Report) -> Iterator[Judged]:
    return distances(report)


@show.register
def _(stage: SpeedStage, report: Report) -> Iterator[Judged]:
    noisy = is_noisy(stage.spread, stage.busy)
    for ratio in stage.ratios:
        if state := select.target_status(ratio):
            yield state is select.TargetStatus.MET, facts.TargetChecked(ratio, noisy)
    rows = [row for row in select.speed_rows(report) if row.pair != F16]
    for pair in dict.fromkeys(row.pair for row in rows):
        own = [row for row in rows if row.pair == pair]
        yield from ((False, slow) for slow in _slow(pair, own))
        if pair.has_tq3_0 and (shares := _shares(own)) and min(low for _, low, _ in shares.spans) >= SLOW:
            yield True, shares


def _slow(pair: Pair, rows: Sequence[SpeedRow]) -> Iterator[facts.Slow]:
    """Return one fact for f16 and one for the pair's neighbour, with every place where the pair is far behind."""
    for other in dict.fromkeys((F16, *(row.neighbour for row in rows if row.neighbour))):
        slow = [(row, ratio.value) for row in rows if (ratio := _against(row, other)) and ratio.value < SLOW]
        if slow:
            rates = [rate for _, rate in slow]
            yield facts.Slow(pair, other, min(rates), max(rates), tuple((row.phase, row.depth) for row, _ in slow))


def _against(row: SpeedRow, other: Pair) -> Interval | None:
    return row.ratio_f16 if other == F16 else row.ratio_neighbour if row.neighbour == other else None


def _shares(rows: Sequence[SpeedRow]) -> facts.RateShares | None:
    spans = []
    for phase in dict.fromkeys(row.phase for row in rows):
        shares = [row.ratio_f16.value for row in rows if row.phase == phase and row.ratio_f16]
        if shares:
            spans.append((phase, min(shares), max(shares)))
    return facts.RateShares(rows[0].pair, tuple(spans)) if spans else None


def distances(report: Report) -> Iterator[tuple[bool, Distance]]:
    """Return every pair with tq3_0, and every stock pair that breaks the model."""
    rows = [row for row in select.main_quality_rows(report) if not (row.is_floor or row.unrotated)]
    for row in rows:
        if row.pair.has_tq3_0 or by_kl(row.kl) is PairLevel.UNSAFE or not fmt.known(row.kl.value):
            larger = _larger_stock(row, rows)
            yield row.kl.value < CHANGED, Distance(row, larger, _beside(row, larger) if larger else None)


def _larger_stock(row: QualityRow, rows: Sequence[QualityRow]) -> QualityRow | None:
    """Return the next larger stock pair, to compare a pair with tq3_0 with."""
    larger = [other for other in rows if not other.pair.has_tq3_0 and other.bits > row.bits]
    if not larger or not row.pair.has_tq3_0 or not fmt.known(row.kl.value):
        return None
    other = min(larger, key=lambda other: (other.bits, other.kl.value))
    return other if fmt.known(other.kl.value) and other.kl.value > 0 else None


def _beside(row: QualityRow, other: QualityRow) -> Beside:
    if row.kl.low > other.kl.high:
        return Beside.HIGHER
    return Beside.LOWER if row.kl.high < other.kl.low else Beside.SAME


def better_keys(report: Report) -> Iterator[BetterKeys]:
    """Return where better keys pay by the intervals: the cheapest close pair beside its twin, else the closest."""
    rows = [row for row in select.main_quality_rows(report) if not (row.is_floor or row.unrotated)]
    for twin in rows:
        better = [row for row in rows if not twin.pair.is_mixed and _spends_on_keys(row, twin)]
        if better:
            close = [row for row in better if row.kl.value < CHANGED]
            best = min(close, key=lambda row: row.bits) if close else min(better, key=lambda row: row.kl.value)
            yield BetterKeys(best, twin)


def _spends_on_keys(row: QualityRow, twin: QualityRow) -> bool:
    """Return whether `row` has the twin's V type, a larger K type, and an interval below the twin's."""
    same_v = row.pair.is_mixed and row.pair.v == twin.pair.v
    return same_v and row.bits > twin.bits and 0 < row.kl.high < twin.kl.low
