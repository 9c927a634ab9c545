"""What the rates of tq3_0 are held against: stock pairs with the aims of the series, and another build. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import F16, Pair
from tqforge.report.schema.base import Phase
from tqforge.report.schema.rows import SpeedRatio
from tqforge.verify.stages.speed.rates import Key, Sample, grouped, median_interval, within_rounds

_OWN, _MIXED = Pair.both(TQ3_0), Pair("q8_0", TQ3_0)
_Q4_0, _Q8_0 = Pair.both("q4_0"), Pair.both("q8_0")


@dataclass(frozen=True)
class Bar:
    """At `depth` (None: at every one) the pair must run at `floor` times the other's rate."""

    pair: Pair
    against: Pair
    phase: Phase
    floor: float
    depth: int | None = None


BARS = (
    Bar(_OWN, _Q4_0, "decode", 0.95, 4096),
    Bar(_OWN, F16, "decode", 1.0, 4096),
    Bar(_OWN, _Q4_0, "prefill", 0.85, 4096),
    Bar(_MIXED, _Q8_0, "decode", 0.95),
    Bar(_MIXED, _Q8_0, "prefill", 0.95),
)
#: Shown without an aim.
_MORE = (
    Bar(_OWN, _Q4_0, "end-to-end", 0),
    Bar(_MIXED, _Q8_0, "end-to-end", 0),
)


def against_stock(samples: Iterable[Sample]) -> tuple[SpeedRatio, ...]:
    """Every comparison of `BARS` at every depth that was measured for both sides."""
    groups = grouped(sample for sample in samples if not sample.build)
    return tuple(ratio for bar in (*BARS, *_MORE) for ratio in _compared(bar, groups))


def _compared(bar: Bar, groups: dict[Key, list[Sample]]) -> Iterator[SpeedRatio]:
    for depth in sorted({depth for pair, depth, phase in groups if (pair, phase) == (bar.pair, bar.phase)}):
        other = groups.get((bar.against, depth, bar.phase), [])
        aimed = bar.floor and bar.depth in (None, depth)
        shared = within_rounds(groups[bar.pair, depth, bar.phase], other)
        yield from _ratio((bar.pair, depth, bar.phase), bar.against, shared, bar.floor if aimed else None)


def against_build(samples: Sequence[Sample]) -> tuple[SpeedRatio, ...]:
    """Every row of the other build: this build's rate over its rate, same pair, same round."""
    own = grouped(sample for sample in samples if not sample.build)
    found: list[SpeedRatio] = []
    for build in dict.fromkeys(sample.build for sample in samples if sample.build):
        for key, theirs in grouped(sample for sample in samples if sample.build == build).items():
            found += _ratio(key, key[0], within_rounds(own.get(key, []), theirs), None, build)
    return tuple(found)


def _ratio(
    key: Key, against: Pair, shared: Sequence[float], bar: float | None, build: str = ""
) -> Iterator[SpeedRatio]:
    if shared:
        pair, depth, phase = key
        yield SpeedRatio(
            pair=pair,
            against=against,
            build=build,
            phase=phase,
            depth=depth,
            ratio=median_interval(shared),
            rounds=len(shared),
            bar=bar,
        )
