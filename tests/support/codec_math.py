"""Mathematics of the codec that only tests need."""

from __future__ import annotations

import numpy as np

from tqforge.core import tq3_0


def unrotate(rows: tq3_0.Floats) -> tq3_0.Floats:
    """Invert `tq3_0.rotate`."""
    return tq3_0.hadamard(rows) * tq3_0.SIGNS * np.float32(0.17677669529663687)


def relative_error(values: tq3_0.Floats, decoded: tq3_0.Floats) -> float:
    """Return the squared error of `decoded` over the energy of `values`."""
    error = np.square(values.astype(np.float64) - decoded.astype(np.float64)).sum()
    return float(error / np.square(values.astype(np.float64)).sum())
