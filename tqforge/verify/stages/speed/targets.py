"""Compare the rates of tq3_0 with stock pairs and with another build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tqforge.core.pair import Pair
from tqforge.report.judge.thresholds import SPEED_TARGETS, SpeedTarget
from tqforge.report.schema.rows import SpeedRatio
from tqforge.verify.stages.speed.rates import Key, Sample, grouped, median_interval, within_rounds


def against_stock(samples: Iterable[Sample]) -> tuple[SpeedRatio, ...]:
    """Return every comparison of `SPEED_TARGETS` at every depth that was measured for both sides."""
    groups = grouped(sample for sample in samples if not sample.build)
    return tuple(ratio for target in SPEED_TARGETS for ratio in _compared(target, groups))


def _compared(target: SpeedTarget, groups: dict[Key, list[Sample]]) -> Iterator[SpeedRatio]:
    for depth in sorted({depth for pair, depth, phase in groups if (pair, phase) == (target.pair, target.phase)}):
        other = groups.get((target.against, depth, target.phase), [])
        applies = target.least and target.depth in (None, depth)
        key = target.pair, depth, target.phase
        yield from _ratio(key, target.against, within_rounds(groups[key], other), target.least if applies else None)


def against_build(samples: Sequence[Sample]) -> tuple[SpeedRatio, ...]:
    """Return this build's rate over that of the other build for each of its rows: same pair, same round."""
    own = grouped(sample for sample in samples if not sample.build)
    found: list[SpeedRatio] = []
    for build in dict.fromkeys(sample.build for sample in samples if sample.build):
        for key, theirs in grouped(sample for sample in samples if sample.build == build).items():
            found += _ratio(key, key[0], within_rounds(own.get(key, []), theirs), None, build)
    return tuple(found)


def _ratio(
    key: Key, against: Pair, shared: Sequence[float], target: float | None, build: str = ""
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
            target=target,
        )
