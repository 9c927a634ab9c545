"""Compare rows of logits over the whole vocabulary in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]


@dataclass(frozen=True)
class TokenScore:
    """One scored position. nll: -log p of the true token; kl: from the reference, None without one. Both in nats."""

    nll: float
    kl: float | None
    same_top: bool | None


def log_softmax(row: Row) -> NDArray[np.float64]:
    """Return the natural logarithms of the probabilities of one row of logits."""
    wide = row.astype(np.float64)
    wide -= wide.max()
    result: NDArray[np.float64] = wide - np.log(np.exp(wide).sum())
    return result


def compare(row: Row, target: int, reference: Row | None) -> TokenScore:
    """Return the score of `row` at the true token `target`, with KL(reference || row)."""
    mine = log_softmax(row)
    if reference is None:
        return TokenScore(float(-mine[target]), None, None)
    wanted = log_softmax(reference)
    kl = float(np.sum(np.exp(wanted) * (wanted - mine)))
    return TokenScore(float(-mine[target]), max(kl, 0.0), bool(row.argmax() == reference.argmax()))
