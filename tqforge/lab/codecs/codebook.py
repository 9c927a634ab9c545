"""Lloyd-Max codebooks for N(0,1)."""

from __future__ import annotations

from functools import cache
from math import erf, sqrt

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
_ITERATIONS = 20_000
_CONVERGED = 1e-13


@cache
def lloyd_max(bits: int) -> tuple[Doubles, Doubles]:
    """Return the `2**bits` centroids and the boundaries between them, both ascending, optimal for N(0,1)."""
    if not 1 <= bits <= 8:
        raise ValueError(f"a codebook has 1 to 8 bits, not {bits}")
    half = 2 ** (bits - 1)
    positive = _quantiles(half)
    for _ in range(_ITERATIONS):
        edges = np.concatenate([[0.0], (positive[1:] + positive[:-1]) / 2, [np.inf]])
        mass = np.diff(_cumulative(edges))
        moved = -np.diff(_density(edges)) / mass
        done = float(np.abs(moved - positive).max()) < _CONVERGED
        positive = moved
        if done:
            break
    centroids = np.concatenate([-positive[::-1], positive])
    return centroids, (centroids[1:] + centroids[:-1]) / 2


def distortion(bits: int) -> float:
    """Return the mean squared error of the optimal codebook on N(0,1): 1 minus the energy of its centroids."""
    centroids, boundaries = lloyd_max(bits)
    mass = np.diff(_cumulative(np.concatenate([[-np.inf], boundaries, [np.inf]])))
    return 1.0 - float((mass * centroids**2).sum())


def _quantiles(half: int) -> Doubles:
    """Start from evenly spaced magnitudes; the iteration converges from any ascending start."""
    return np.asarray((np.arange(half) + 0.5) * 3.0 / half)


def _cumulative(x: Doubles) -> Doubles:
    return np.array([0.5 * (1.0 + erf(value / sqrt(2.0))) for value in x])


def _density(x: Doubles) -> Doubles:
    return np.asarray(np.exp(-0.5 * np.square(x)) / sqrt(2.0 * np.pi))
