"""Rates from times: medians, ratios within a round, the part that grows with depth, and the spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import F16, Pair
from tqforge.report.schema.base import Interval, Phase
from tqforge.report.schema.rows import SpeedRow
from tqforge.verify.stats import block_bootstrap

Key = tuple[Pair, int, Phase]


@dataclass(frozen=True)
class Sample:
    """One measurement. Samples of one round were taken in turns; `build` is empty for the build under test."""

    pair: Pair
    depth: int
    phase: Phase
    round: int
    tokens: int
    seconds: float
    cpu: float = 0.0
    build: str = ""

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds

    @property
    def key(self) -> Key:
        return self.pair, self.depth, self.phase


def neighbour(pair: Pair) -> Pair:
    """Return the stock pair that takes the same code paths: q4_0 for tq3_0, the other type for a mixed pair."""
    if not pair.has_tq3_0:
        return F16
    return Pair.both("q4_0" if not pair.is_mixed else pair.k if pair.v == TQ3_0 else pair.v)


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median with its 95 % bootstrap interval; with few rounds that is their range."""
    return block_bootstrap(np.array(values, dtype=np.float64), block=1, statistic=lambda rows: np.median(rows, axis=-1))


def within_rounds(own: Sequence[Sample], other: Sequence[Sample]) -> list[float]:
    """Return the ratio of rates round by round, which cancels what slows both down."""
    by_round = {sample.round: sample.rate for sample in other}
    return [sample.rate / by_round[sample.round] for sample in own if sample.round in by_round]


def ratios(own: Sequence[Sample], other: Sequence[Sample]) -> Interval | None:
    """Return the median of `within_rounds` with its interval; None without a common round."""
    shared = within_rounds(own, other)
    return median_interval(shared) if shared else None


def grouped(samples: Iterable[Sample]) -> dict[Key, list[Sample]]:
    """Group samples by pair, depth and phase, in the order they were first seen."""
    groups: dict[Key, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.key, []).append(sample)
    return groups


def rows_of(samples: Iterable[Sample]) -> tuple[SpeedRow, ...]:
    """Return one row per pair, depth and phase of one build."""
    groups = grouped(samples)
    return tuple(_row(key, own, groups) for key, own in groups.items())


def _row(key: Key, own: list[Sample], groups: dict[Key, list[Sample]]) -> SpeedRow:
    pair, depth, phase = key
    near = {other: ratios(own, groups.get((other, depth, phase), [])) for other in (neighbour(pair), F16)}
    beside = next((other for other, ratio in near.items() if ratio and other != pair), None)
    rate = median_interval([sample.rate for sample in own])
    return SpeedRow(
        pair=pair,
        depth=depth,
        phase=phase,
        rate=rate,
        ratio_f16=near[F16],
        rounds=len(own),
        depth_share=_depth_share(rate.value, groups.get((pair, 0, phase)), depth),
        neighbour=beside,
        ratio_neighbour=near[beside] if beside else None,
    )


def _depth_share(rate: float, empty: Sequence[Sample] | None, depth: int) -> float | None:
    """Return the part of the time per token that an empty cache does not have."""
    if not empty or depth == 0:
        return None
    return max(0.0, 1.0 - rate / median(sample.rate for sample in empty))


def spread(samples: Iterable[Sample]) -> float | None:
    """Return half the interquartile range of repeated rates over their median; the median of all groups."""
    groups: dict[tuple[str, Key], list[float]] = {}
    for sample in samples:
        groups.setdefault((sample.build, sample.key), []).append(sample.rate)
    widths = []
    for rates in groups.values():
        if len(rates) > 1:
            low, high = np.quantile(rates, [0.25, 0.75])
            widths.append(float(high - low) / 2 / median(rates))
    return median(widths) if widths else None


def cpu_share(samples: Iterable[Sample], threads: int) -> float | None:
    """Return CPU seconds over those of all threads: 1 on a quiet machine, since waiting threads of llama.cpp spin."""
    found = list(samples)
    wall = sum(sample.seconds for sample in found)
    return min(1.0, sum(sample.cpu for sample in found) / wall / threads) if wall else None
