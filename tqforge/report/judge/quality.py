"""How far a cache type is from f16, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tqforge.report import fmt
from tqforge.report.judge import select
from tqforge.report.judge.thresholds import CHANGED, CLOSE, by_kl
from tqforge.report.schema.base import Interval, PairLevel
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import PairVerdict, QualityRow

Judged = tuple[bool, str]

#: Which sides llama.cpp rotates by itself, by the word in the report.
ROTATION = {"KV": "keys, values rotated", "K": "keys rotated", "V": "values rotated", "none": "not rotated"}


def band(kl: Interval) -> str:
    """How far a cache is from f16, in words."""
    if by_kl(kl) is PairLevel.UNSAFE:
        return "so different from f16 that the model is not itself any more"
    if kl.value < CLOSE:
        return "hardly to be told from f16"
    return "close to f16" if kl.value < CHANGED else "clearly different from f16"


def quality(report: Report) -> Iterator[Judged]:
    """How far each pair with our type, and each stock pair that is broken, is from f16."""
    rows = select.main_quality_rows(report)
    for row in rows:
        if row.is_floor or row.unrotated:
            continue
        if not fmt.known(row.kl.value):
            yield False, f"{quality_name(row)}: the KL divergence came out as no number."
        elif row.pair.has_tq3_0 or by_kl(row.kl) is PairLevel.UNSAFE:
            yield row.kl.value < CHANGED, _quality_row(row, rows)


def _quality_row(row: QualityRow, rows: list[QualityRow]) -> str:
    name = quality_name(row)
    agree = f"the same next word as f16 {fmt.percent(row.top1.value)} of the time" if fmt.known(row.top1.value) else ""
    text = f"{name} is {band(row.kl)}: KL {fmt.kl(row.kl.value)} ({fmt.kl_range(row.kl)})"
    text += f", {agree}" if agree else ""
    return f"{text}{_beside(row, rows)}."


def _beside(row: QualityRow, rows: list[QualityRow]) -> str:
    """The next larger stock pair, and whether the two can be told apart."""
    larger = [
        other
        for other in rows
        if not (other.is_floor or other.unrotated or other.pair.has_tq3_0) and other.bits > row.bits
    ]
    if not larger or not row.pair.has_tq3_0:
        return ""
    other = min(larger, key=lambda other: (other.bits, other.kl.value))
    if not (fmt.known(other.kl.value) and other.kl.value > 0):
        return ""
    beside = f"{quality_name(other)} at {fmt.bits(other.bits)} bits (KL {fmt.kl(other.kl.value)})"
    if row.kl.low > other.kl.high:
        return f"; that is {fmt.times(row.kl.value / other.kl.value)} the KL of {beside}"
    if row.kl.high < other.kl.low:
        return f"; that is closer than {beside}"
    return f"; not to be told from {beside}"


def quality_name(row: QualityRow | PairVerdict) -> str:
    """The pair, and whether llama.cpp's own rotation was switched off for it."""
    return f"{row.pair} without rotation" if row.unrotated else str(row.pair)


def advice(report: Report) -> Iterator[tuple[str, str]]:
    """Better keys than values, only where the intervals say that it pays: the cheapest close pair, else the closest."""
    rows = [row for row in select.main_quality_rows(report) if not row.is_floor and not row.unrotated]
    for twin in rows:
        better = [row for row in rows if not twin.pair.is_mixed and _spends_on_keys(row, twin)]
        if not better:
            continue
        close = [row for row in better if row.kl.value < CHANGED]
        best = min(close, key=lambda row: row.bits) if close else min(better, key=lambda row: row.kl.value)
        gain = f"{fmt.times(twin.kl.value / best.kl.value)} lower than" if best.kl.value > 0 else "far below"
        dear, cheap = (f"{quality_name(row)} ({fmt.bits(row.bits)} bits)" for row in (best, twin))
        yield "quality", f"Keys deserve more bits than values here: {dear} has a KL {gain} {cheap}."


def _spends_on_keys(row: QualityRow, twin: QualityRow) -> bool:
    """Same V type, a larger K type, and intervals that do not touch."""
    return row.pair.is_mixed and row.pair.v == twin.pair.v and row.bits > twin.bits and 0 < row.kl.high < twin.kl.low
