"""Statistics with intervals."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tqforge.report.schema.base import Interval

Floats = NDArray[np.float64]
_Z95 = 1.959963984540054
_RESAMPLES = 2000


def wilson(hits: float, n: int) -> Interval | None:
    """Return the 95 % Wilson interval of a rate; None without a trial."""
    if n <= 0:
        return None
    rate, z2 = hits / n, _Z95 * _Z95
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 * sqrt(rate * (1 - rate) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return Interval(value=rate, low=max(0.0, centre - half), high=min(1.0, centre + half))


def mean(rows: Floats) -> Floats:
    """Return the mean over the last axis."""
    return np.asarray(rows.mean(axis=-1))


def percentile99(rows: Floats) -> Floats:
    """Return the 99th percentile over the last axis."""
    return np.asarray(np.quantile(rows, 0.99, axis=-1))


def growth(rows: Floats) -> Floats:
    """Return exp of the mean over the last axis: of differences in NLL that is the ratio of two perplexities."""
    return np.asarray(np.exp(rows.mean(axis=-1)))


def block_bootstrap(
    values: Floats, block: int = 16, seed: int = 0, statistic: Callable[[Floats], Floats] = mean
) -> Interval:
    """Return a statistic with its 95 % block bootstrap interval: neighbouring tokens are not independent."""
    n = len(values)
    if n == 0:
        raise ValueError("no values")
    block = max(1, min(block, n))
    starts_needed = -(-n // block)
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, n, size=(_RESAMPLES, starts_needed))
    index = (starts[:, :, None] + np.arange(block)).reshape(_RESAMPLES, -1)[:, :n] % n
    low, high = np.quantile(statistic(values[index]), [0.025, 0.975])
    return Interval(value=float(statistic(values)), low=float(low), high=float(high))


def edit_distance(left: str, right: str) -> int:
    """Return the Levenshtein distance."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]
