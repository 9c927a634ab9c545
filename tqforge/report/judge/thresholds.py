"""What safe, lossy and broken mean: the one place where bounds are drawn. Pure.

The bands of KL divergence are conventions of this project, chosen on models of 0.1 to 0.5 billion parameters where
needles and greedy answers were looked at beside them; they are printed with every report.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from tqforge.report.schema.base import Interval, PairLevel

#: Mean KL divergence from f16, nats per token: hardly to be told apart, close, and not the same model any more.
CLOSE, CHANGED, BROKEN = 0.01, 0.05, 0.5
#: A pair whose whole 95 % interval of needles found lies below this loses text.
LEAST_FOUND = 0.95
#: One whose whole interval lies below this is of no use for long texts.
LEAST_USABLE = 0.5


def by_kl(kl: Interval) -> PairLevel:
    """By the whole interval: one that lies across a bound leaves the pair undecided."""
    if not all(map(isfinite, (kl.value, kl.low, kl.high))):
        return PairLevel.UNDECIDED
    if kl.low >= BROKEN:
        return PairLevel.UNSAFE
    if kl.high < CHANGED:
        return PairLevel.SAFE
    return PairLevel.LOSSY if kl.low >= CHANGED else PairLevel.UNDECIDED


def by_needles(hits: int, n: int, rate: Interval | None) -> PairLevel:
    """By the interval of the needles found among those that f16 found."""
    if rate is None or not isfinite(rate.high):
        return PairLevel.SAFE if hits == n else PairLevel.UNDECIDED
    if rate.high < LEAST_USABLE:
        return PairLevel.UNSAFE
    return PairLevel.LOSSY if rate.high < LEAST_FOUND else PairLevel.SAFE


def worst(levels: Iterable[PairLevel]) -> PairLevel:
    return max(levels, key=list(PairLevel).index)
