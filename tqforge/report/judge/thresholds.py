"""Every number that decides: pair levels, device limits, speed targets, codec tolerances, memory budgets.

The bands of KL divergence are conventions of this project. They were chosen on models of 0.1 to 0.5 billion parameters
whose needles and greedy answers were compared, and are printed with every report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import F16, Pair
from tqforge.report.schema.base import Interval, PairLevel, Phase

#: Mean KL divergence from f16, nats per token: indistinguishable below the first, close below the second, and
#: unusable from the third.
CLOSE, CHANGED, BROKEN = 0.01, 0.05, 0.5
#: Needles found, of those that f16 found: the whole 95% interval below the first loses text, below the second is
#: useless for long texts.
LEAST_FOUND, LEAST_USABLE = 0.95, 0.5

#: After the same rows, KL(CPU || device) may be this many times that of f16/f16, plus a slack.
DEVICE_FACTOR, DEVICE_SLACK = 2.0, 1e-3
#: The squared error of rows written by the device may be this many times the CPU's, plus a slack.
WRITE_FACTOR, WRITE_SLACK = 1.1, 1e-4

#: Below this share of the rate of f16 or of its stock neighbour in the same run, a fallback is suspected.
SLOW = 0.5
#: A single round has no spread, so it neither meets nor misses a target.
LEAST_ROUNDS = 2
#: With more spread, or with less of the CPUs than this, the machine was not quiet.
NOISY_SPREAD, QUIET_SHARE = 0.10, 0.90

#: Codec: relative deviation of the codebook's distortion, of a block's norm, and the cosine of the worst block.
CODEBOOK_SLACK, NORM_SLACK, WORST_COSINE, COSINE_SLACK = 0.01, 6e-4, 0.845, 0.001
#: llama.cpp logs sizes to a hundredth of a MiB; a plan that is off by more is wrong.
PLAN_SLACK = 0.02 * (1 << 20)

GIB = 1 << 30
#: Share of a Mac's memory that its GPU gets (recommendedMaxWorkingSetSize), below and from a memory of MAC_BOUND.
MAC_SMALL, MAC_LARGE, MAC_BOUND = 2 / 3, 3 / 4, 36 * GIB
#: Elsewhere the system and other programs keep a fifth.
ELSEWHERE = 0.8


@dataclass(frozen=True)
class SpeedTarget:
    """A pair must run at `least` times the rate of another: at one depth, or at all. Zero only shows the ratio."""

    pair: Pair
    against: Pair
    phase: Phase
    least: float
    depth: int | None = None


_OURS, _MIXED, _Q8_0, _Q4_0 = Pair.both(TQ3_0), Pair("q8_0", TQ3_0), Pair.both("q8_0"), Pair.both("q4_0")
SPEED_TARGETS = (
    SpeedTarget(_OURS, _Q4_0, "decode", 0.95, 4096),
    SpeedTarget(_OURS, F16, "decode", 1.0, 4096),
    SpeedTarget(_OURS, _Q4_0, "prefill", 0.85, 4096),
    SpeedTarget(_MIXED, _Q8_0, "decode", 0.95),
    SpeedTarget(_MIXED, _Q8_0, "prefill", 0.95),
    SpeedTarget(_OURS, _Q4_0, "end-to-end", 0),
    SpeedTarget(_MIXED, _Q8_0, "end-to-end", 0),
)


def by_kl(kl: Interval) -> PairLevel:
    """Rate by the whole interval: one that crosses a bound leaves the pair undecided."""
    if not all(map(isfinite, (kl.value, kl.low, kl.high))):
        return PairLevel.UNDECIDED
    if kl.low >= BROKEN:
        return PairLevel.UNSAFE
    if kl.high < CHANGED:
        return PairLevel.SAFE
    return PairLevel.LOSSY if kl.low >= CHANGED else PairLevel.UNDECIDED


def by_needles(hits: int, n: int, rate: Interval | None) -> PairLevel:
    """Rate by the interval of the needles found among those that f16 found."""
    if rate is None or not isfinite(rate.high):
        return PairLevel.SAFE if hits == n else PairLevel.UNDECIDED
    if rate.high < LEAST_USABLE:
        return PairLevel.UNSAFE
    return PairLevel.LOSSY if rate.high < LEAST_FOUND else PairLevel.SAFE


def worst(levels: Iterable[PairLevel]) -> PairLevel:
    """Return the worst of at least one level."""
    return max(levels, key=list(PairLevel).index)


def device_limit(floor: float) -> float:
    """Return the largest acceptable KL(CPU || device), given that of f16/f16."""
    return DEVICE_FACTOR * floor + DEVICE_SLACK


def write_limit(cpu: float) -> float:
    """Return the largest acceptable squared error of written rows, given the CPU's."""
    return WRITE_FACTOR * cpu + WRITE_SLACK


def is_noisy(spread: float | None, share: float | None) -> bool:
    """Return whether repeated rates differ too much or the CPUs were shared; None was not measured."""
    return (spread is not None and spread > NOISY_SPREAD) or (share is not None and share < QUIET_SHARE)
