from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tqforge.verify.stats import block_bootstrap, edit_distance, wilson

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
