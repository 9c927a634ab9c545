from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tqforge.verify.stages.speed.rates import median_interval
from tqforge.verify.stats import block_bootstrap, edit_distance, growth, wilson

WORDS = st.text("abcd", max_size=8)


def test_wilson_against_published_values() -> None:
    interval = wilson(9, 10)
    assert interval is not None
    assert (round(interval.value, 3), round(interval.low, 3), round(interval.high, 3)) == (0.9, 0.596, 0.982)
    assert wilson(0, 0) is None


@given(st.integers(1, 200), st.data())
def test_wilson_holds_the_rate_and_stays_in_bounds(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    interval = wilson(hits, n)
    assert interval is not None
    assert 0 <= interval.low <= hits / n + 1e-12
    assert hits / n - 1e-12 <= interval.high <= 1


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [("", "", 0), ("VcMYB4", "VcMYB4", 0), ("VcMYB4", "VcMYB", 1), ("kitten", "sitting", 3), ("", "abc", 3)],
)
def test_edit_distance(left: str, right: str, distance: int) -> None:
    assert edit_distance(left, right) == distance


@given(WORDS, WORDS, WORDS)
def test_edit_distance_is_a_metric(a: str, b: str, c: str) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


def test_bootstrap_is_reproducible_and_widens_with_dependence() -> None:
    runs = np.repeat(np.random.default_rng(0).random(16), 16)
    narrow, wide = block_bootstrap(runs, block=1), block_bootstrap(runs, block=16)
    assert block_bootstrap(runs) == block_bootstrap(runs)
    assert narrow.low <= narrow.value <= narrow.high
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
    with pytest.raises(ValueError, match="no values"):
        block_bootstrap(np.array([]))


def test_wilson_is_the_root_of_its_equation() -> None:
    """Both bounds p solve (rate - p)^2 = z^2 p (1 - p) / n."""
    for hits, n in ((0, 5), (3, 9), (26, 27), (9, 9), (500, 1000)):
        interval = wilson(hits, n)
        assert interval is not None
        for bound in (interval.low, interval.high):
            assert (hits / n - bound) ** 2 == pytest.approx(1.959963984540054**2 * bound * (1 - bound) / n, abs=1e-12)


def test_the_bootstrap_of_a_mean_has_the_normal_width() -> None:
    """Independent values: the interval of the mean is 1.96 standard errors to either side."""
    values = np.random.default_rng(1).standard_normal(400)
    interval = block_bootstrap(values, block=1)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.value == pytest.approx(values.mean())
    assert interval.high - interval.value == pytest.approx(half, rel=0.1)
    assert interval.value - interval.low == pytest.approx(half, rel=0.1)


def test_whole_runs_as_blocks_have_the_width_of_as_many_values() -> None:
    """Runs of 16 equal values hold as much as one value each: the standard error of their number."""
    runs = np.random.default_rng(2).standard_normal(100)
    interval = block_bootstrap(np.repeat(runs, 16), block=16)
    half = 1.96 * runs.std() / np.sqrt(len(runs))
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.25)


def test_growth_is_the_geometric_mean() -> None:
    values = np.log(np.array([2.0, 8.0]))
    assert float(growth(values)) == pytest.approx(4.0)
    interval = block_bootstrap(values, block=1, statistic=growth)
    assert (interval.low, interval.value, interval.high) == pytest.approx((2, 4, 8))


@pytest.mark.parametrize(
    ("values", "bounds"),
    [([5.0], (5.0, 5.0, 5.0)), ([1.0, 3.0], (1.0, 2.0, 3.0)), ([1.0, 2.0, 9.0], (1.0, 2.0, 9.0))],
)
def test_the_interval_of_a_median_of_few_rounds_is_their_range(
    values: list[float], bounds: tuple[float, float, float]
) -> None:
    """The least of three is the median of a resample in 7 of 27 cases, far more than 2.5 %."""
    interval = median_interval(values)
    assert (interval.low, interval.value, interval.high) == bounds


def test_the_interval_of_a_median_follows_the_order_statistics() -> None:
    """Of 101 values the median's 95 % interval lies between the 41st and the 61st, give or take two ranks."""
    interval = median_interval([float(value) for value in range(101)])
    assert interval.value == 50
    assert interval.low == pytest.approx(40, abs=2)
    assert interval.high == pytest.approx(60, abs=2)
