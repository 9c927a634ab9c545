"""Every number that decides, with values on both sides of it."""

from __future__ import annotations

from math import inf, nan

import pytest

from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import F16, Pair
from tqforge.report.judge import thresholds
from tqforge.report.judge.thresholds import SPEED_TARGETS, by_kl, by_needles, device_limit, is_noisy, worst, write_limit
from tqforge.report.schema.base import Interval, PairLevel


def interval(low: float, value: float, high: float) -> Interval:
    return Interval(value=value, low=low, high=high)


@pytest.mark.parametrize(
    ("low", "high", "level"),
    [
        (0.0, 0.0499, PairLevel.SAFE),
        (0.0, 0.05, PairLevel.UNDECIDED),
        (0.0499, 0.4, PairLevel.UNDECIDED),
        (0.05, 0.4, PairLevel.LOSSY),
        (0.05, 9.0, PairLevel.LOSSY),
        (0.4999, 9.0, PairLevel.LOSSY),
        (0.5, 9.0, PairLevel.UNSAFE),
        (0.0499, 9.0, PairLevel.UNDECIDED),
    ],
)
def test_kl_is_rated_by_the_whole_interval(low: float, high: float, level: PairLevel) -> None:
    assert by_kl(interval(low, (low + high) / 2, high)) is level


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_kl_that_is_not_finite_decides_nothing(bad: float) -> None:
    for bounds in ((bad, 0.01, 0.02), (0.0, bad, 0.02), (0.0, 0.01, bad)):
        assert by_kl(interval(*bounds)) is PairLevel.UNDECIDED


@pytest.mark.parametrize(
    ("high", "level"),
    [
        (0.4999, PairLevel.UNSAFE),
        (0.5, PairLevel.LOSSY),
        (0.9499, PairLevel.LOSSY),
        (0.95, PairLevel.SAFE),
        (1.0, PairLevel.SAFE),
    ],
)
def test_needles_are_rated_by_the_upper_bound(high: float, level: PairLevel) -> None:
    assert by_needles(1, 9, interval(0.0, high / 2, high)) is level


def test_needles_without_an_interval_must_all_be_found() -> None:
    for rate in (None, interval(0, 0, nan)):
        assert by_needles(9, 9, rate) is PairLevel.SAFE
        assert by_needles(8, 9, rate) is PairLevel.UNDECIDED


def test_the_worst_level_counts() -> None:
    assert worst([PairLevel.SAFE, PairLevel.UNSAFE, PairLevel.LOSSY]) is PairLevel.UNSAFE
    assert worst([PairLevel.SAFE, PairLevel.UNDECIDED]) is PairLevel.UNDECIDED
    assert worst([PairLevel.UNDECIDED, PairLevel.LOSSY]) is PairLevel.LOSSY
    assert worst([PairLevel.SAFE]) is PairLevel.SAFE


def test_the_limits_of_a_device() -> None:
    assert device_limit(0.0) == pytest.approx(0.001)
    assert device_limit(2e-5) == pytest.approx(0.00104)
    assert write_limit(0.0) == pytest.approx(0.0001)
    assert write_limit(0.02) == pytest.approx(0.0221)


@pytest.mark.parametrize(
    ("spread", "share", "noisy"),
    [
        (None, None, False),
        (0.10, None, False),
        (0.1001, None, True),
        (None, 0.90, False),
        (None, 0.8999, True),
        (0.05, 0.95, False),
        (0.05, 0.5, True),
        (0.5, 0.95, True),
    ],
)
def test_a_noisy_machine(spread: float | None, share: float | None, noisy: bool) -> None:
    assert is_noisy(spread, share) is noisy


def test_the_speed_targets() -> None:
    ours, mixed, q4_0, q8_0 = Pair.both(TQ3_0), Pair("q8_0", TQ3_0), Pair.both("q4_0"), Pair.both("q8_0")
    judged = {(t.pair, t.against, t.phase): (t.least, t.depth) for t in SPEED_TARGETS if t.least}
    assert judged == {
        (ours, q4_0, "decode"): (0.95, 4096),
        (ours, F16, "decode"): (1.0, 4096),
        (ours, q4_0, "prefill"): (0.85, 4096),
        (mixed, q8_0, "decode"): (0.95, None),
        (mixed, q8_0, "prefill"): (0.95, None),
    }
    assert {t.phase for t in SPEED_TARGETS if not t.least} == {"end-to-end"}
    assert all(t.pair.has_tq3_0 and not t.against.has_tq3_0 for t in SPEED_TARGETS)


def test_the_bands_rise() -> None:
    assert 0 < thresholds.CLOSE < thresholds.CHANGED < thresholds.BROKEN
    assert 0 < thresholds.LEAST_USABLE < thresholds.LEAST_FOUND < 1
    assert thresholds.MAC_SMALL < thresholds.MAC_LARGE < thresholds.ELSEWHERE < 1


@pytest.mark.parametrize("level", PairLevel)
def test_any_level_is_worse_than_safe_alone(level: PairLevel) -> None:
    assert worst([PairLevel.SAFE, level]) is level
    assert worst([level, PairLevel.UNSAFE]) is PairLevel.UNSAFE


@pytest.mark.parametrize(
    ("kl", "limit_of_f16", "within"),
    [(0.0012, 1e-4, True), (0.00121, 1e-4, False), (0.001, 0.0, True), (0.0011, 0.0, False), (0.2, 0.1, True)],
)
def test_a_kl_on_the_device_beside_that_of_f16(kl: float, limit_of_f16: float, within: bool) -> None:
    assert (kl <= device_limit(limit_of_f16) + 1e-12) is within
