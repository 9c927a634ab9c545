"""Calibrated keys: K' = s * (K - c) is stored, and <Q / s, K'> differs from <Q, K> by a constant per query.

Softmax does not see that constant, so c and s are free: c removes what all keys share, s balances the channels so
that a quantizer whose error spreads evenly harms the scores least: s = (E[Q^2] / var K)^(1/4).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
_FLOOR = 1e-3
_CLAMP = 3.0
_TINY = 1e-20
#: The first token's keys are unlike all others; they would shift the mean.
_DROPPED = 1


@dataclass
class Moments:
    """Sums over the calibration tokens of one layer, per KV head and channel."""

    head: int
    keys: list[Floats] = field(default_factory=list)
    queries: list[Doubles] = field(default_factory=list)

    def add_keys(self, cells: NDArray[np.int64], rows: Floats) -> None:
        """Add K rows of shape (tokens, heads * head size)."""
        self.keys.append(rows[cells >= _DROPPED].reshape(-1, rows.shape[1] // self.head, self.head))

    def add_queries(self, queries: Floats) -> None:
        """Add queries of shape (tokens, query heads, head size)."""
        self.queries.append(np.square(queries.astype(np.float64)).mean(axis=0))

    def calibrate(self) -> Calibration:
        """Return c and s of shape (heads, head size)."""
        keys = np.concatenate(self.keys).astype(np.float64)
        kv_heads = keys.shape[1]
        energy = np.mean(self.queries, axis=0)
        energy = energy.reshape(kv_heads, -1, self.head).mean(axis=1)
        return Calibration(keys.mean(axis=0).astype(np.float32), scale(energy, keys.var(axis=0)))


@dataclass(frozen=True)
class Calibration:
    """The offset c and the scale s of one layer, of shape (heads, head size)."""

    offset: Floats
    scale: Floats

    def to_stored(self, rows: Floats) -> Floats:
        """Return K' of rows of shape (tokens, heads * head size)."""
        heads = rows.reshape(-1, *self.offset.shape)
        return np.asarray((heads - self.offset) * self.scale).reshape(rows.shape)

    def from_stored(self, rows: Floats) -> Floats:
        """Return the keys that attention sees: dividing the query by s has the same effect."""
        heads = rows.reshape(-1, *self.offset.shape)
        return np.asarray(heads / self.scale + self.offset).reshape(rows.shape)


def _floored(moments: Doubles) -> Doubles:
    return np.asarray(np.maximum(moments, _FLOOR * moments.mean(axis=-1, keepdims=True) + _TINY))


def scale(query_energy: Doubles, key_variance: Doubles) -> Floats:
    """Return s per channel, floored, with geometric mean 1 per head, and clamped to [1/3, 3]."""
    found = (_floored(query_energy) / _floored(key_variance)) ** 0.25
    found /= np.exp(np.log(found).mean(axis=-1, keepdims=True))
    return np.asarray(np.clip(found, 1 / _CLAMP, _CLAMP), dtype=np.float32)
