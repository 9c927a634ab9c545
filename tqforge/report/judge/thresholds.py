"""What safe, lossy and broken mean: the one place where bounds are drawn. Pure.

The bands of KL divergence are conventions of this project, chosen on models of 0.1 to 0.5 billion parameters where
needles and greedy answers were looked at beside them; they are printed with every report.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import isfinite

from tqforge.report.schema.base import Interval

#: Mean KL divergence from f16, nats per token: hardly to be told apart, close, and not the same model any more.
CLOSE, CHANGED, BROKEN = 0.01, 0.05, 0.5
#: A pair whose whole 95 % interval of needles found lies below this loses text.
LEAST_FOUND = 0.95
#: One whose whole interval lies below this is of no use for long texts.
LEAST_USABLE = 0.5


class Level(StrEnum):
    """From the best to the worst."""

    SAFE = "safe"
    UNDECIDED = "undecided"
    LOSSY = "costs quality"
    UNSAFE = "unsafe"


def by_kl(kl: Interval) -> Level:
    """By the whole interval: one that lies across a bound leaves the pair undecided."""
    if not all(map(isfinite, (kl.value, kl.low, kl.high))):
        return Level.UNDECIDED
    if kl.low >= BROKEN:
        return Level.UNSAFE
    if kl.high < CHANGED:
        return Level.SAFE
    return Level.LOSSY if kl.low >= CHANGED else Level.UNDECIDED


def by_needles(hits: int, n: int, rate: Interval | None) -> Level:
    """By the interval of the needles found among those that f16 found."""
    if rate is None or not isfinite(rate.high):
        return Level.SAFE if hits == n else Level.UNDECIDED
    if rate.high < LEAST_USABLE:
        return Level.UNSAFE
    return Level.LOSSY if rate.high < LEAST_FOUND else Level.SAFE


def worst(levels: Iterable[Level]) -> Level:
    return max(levels, key=list(Level).index)
