"""Rates from times: medians, ratios within a round, what grows with depth, and whether the machine was quiet. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import F16, Pair
from tqforge.report.schema.base import Interval, Phase
from tqforge.report.schema.rows import SpeedRow

Key = tuple[Pair, int, Phase]
#: Below this share of its neighbour's rate in the same run a fall-back to a slow path is suspected.
SUSPECT = 0.5
#: Above this spread, or with less of the CPUs than this, a rate is not worth a decimal.
NOISY_SPREAD, QUIET_SHARE = 0.10, 0.90
_RESAMPLES = 2000


@dataclass(frozen=True)
class Sample:
    """One measurement. Samples with the same round were taken one after the other; `build` is empty for our own."""

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


def median_interval(values: Sequence[float], seed: int = 0) -> Interval:
    """The median and the 95 % bootstrap interval of it; with few rounds that is their range."""
    if not values:
        raise ValueError("no values")
    drawn = np.random.default_rng(seed).choice(np.array(values), size=(_RESAMPLES, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return Interval(value=median(values), low=float(low), high=float(high))


def within_rounds(own: Sequence[Sample], other: Sequence[Sample]) -> list[float]:
    """Rate over the other's rate, round by round: what slows both down in a round does not count."""
    by_round = {sample.round: sample.rate for sample in other}
    return [sample.rate / by_round[sample.round] for sample in own if sample.round in by_round]


def ratios(own: Sequence[Sample], other: Sequence[Sample]) -> Interval | None:
    """The median of `within_rounds` with its interval."""
    shared = within_rounds(own, other)
    return median_interval(shared) if shared else None


def grouped(samples: Iterable[Sample]) -> dict[Key, list[Sample]]:
    """Samples by pair, depth and phase, in the order they were first seen."""
    groups: dict[Key, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.key, []).append(sample)
    return groups


def rows_of(samples: Iterable[Sample]) -> tuple[SpeedRow, ...]:
    """One row per pair, depth and phase of one build."""
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
        note=_suspicion(near),
        depth_share=_depth_share(rate.value, groups.get((pair, 0, phase)), depth),
        neighbour=beside,
        ratio_neighbour=near[beside] if beside else None,
    )


def _suspicion(near: dict[Pair, Interval | None]) -> str:
    """A neighbour may itself be slow (stock pairs without a tiled path), so f16 is asked as well."""
    slow = [other for other, ratio in near.items() if ratio and ratio.value < SUSPECT]
    if not slow:
        return ""
    return (
        f"over 2x slower than {' and '.join(map(str, slow))} in the same run: a fall-back to a slow path is suspected"
    )


def _depth_share(rate: float, empty: Sequence[Sample] | None, depth: int) -> float | None:
    """Of the time per token: the part that an empty cache does not have."""
    if not empty or depth == 0:
        return None
    return max(0.0, 1.0 - rate / median(sample.rate for sample in empty))


def spread(samples: Iterable[Sample]) -> float | None:
    """Half the range of the middle half of repeated rates, relative to their median; the middle one of all groups."""
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
    """CPU seconds over what the threads could have had. Waiting threads of llama.cpp spin: 1 if all is quiet."""
    found = list(samples)
    wall = sum(sample.seconds for sample in found)
    return min(1.0, sum(sample.cpu for sample in found) / wall / threads) if wall else None


def noise(width: float | None, share: float | None) -> str:
    """What a reader must know about the machine; empty when it was quiet."""
    seen = []
    if width is not None and width > NOISY_SPREAD:
        seen.append(f"repeated rates differ by {width:.0%} from their median")
    if share is not None and share < QUIET_SHARE:
        seen.append(f"this run had {share:.0%} of the CPUs it asked for")
    if not seen:
        return ""
    return f"The machine was not quiet: {', '.join(seen)}. Rates are low; ratios within a round suffer less."
