"""QJL: the signs of a random projection of a residual, and the estimate of the residual that they give.

For a residual r of d values and a projection S, `sign(S r)` takes one bit per value and `|r|` one fp16 number per
head. A Gaussian S has N(0,1) entries, an orthogonal one is sqrt(d) times an orthonormal matrix. The estimate
`gain * |r| * S^T sign(S r) / d` is unbiased for inner products with gain sqrt(pi/2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import pi, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Projection = Literal["gaussian", "orthogonal"]
UNBIASED = sqrt(pi / 2)
#: Factor that minimizes the squared error of the unbiased estimate with an orthogonal projection.
SHRINKAGE = 2 / pi


@dataclass(frozen=True, kw_only=True)
class Residual:
    """A QJL stage: its projection and what the unbiased estimate is multiplied with (`damping`)."""

    projection: Projection = "orthogonal"
    damping: float = 1.0

    def bits_per_value(self, head_size: int) -> float:
        """Return one sign per value and one fp16 norm per head."""
        return 1.0 + 16 / head_size

    def roundtrip(self, residual: Floats) -> Floats:
        """Return the estimate of rows of residuals, one head each."""
        size = residual.shape[-1]
        s = projection(self.projection, size)
        norms = np.linalg.norm(residual, axis=1, keepdims=True).astype(np.float16).astype(np.float32)
        signs = np.where(residual @ s.T >= 0, np.float32(1), np.float32(-1))
        return np.asarray(signs @ s * norms * np.float32(self.damping * UNBIASED / size), dtype=np.float32)


@cache
def projection(kind: Projection, size: int) -> Floats:
    """Return the projection matrix, the same in every run."""
    entries = np.random.default_rng([size, 1]).standard_normal((size, size))
    if kind == "gaussian":
        return entries.astype(np.float32)
    q, r = np.linalg.qr(entries)
    return np.asarray(q * np.sign(np.diag(r)) * sqrt(size), dtype=np.float32)
