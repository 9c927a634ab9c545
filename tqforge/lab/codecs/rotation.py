"""Orthogonal transforms of the last axis."""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tqforge.core import tq3_0

Floats = NDArray[np.float32]
Rotation = Literal["none", "block", "head", "dense"]
ROTATIONS: tuple[str, ...] = get_args(Rotation)
_GRAPH_V = 64


def matrix(kind: Rotation, size: int) -> Floats | None:
    """Return the orthonormal matrix of a rotation for vectors of `size`; None leaves them as they are.

    `block` is tq3_0's signs and 32-point Hadamard transform, `head` the plain Hadamard transform of llama.cpp's graph,
    `dense` a random orthogonal matrix, the same in every run.
    """
    if kind == "none":
        return None
    if kind == "block":
        return _blocks(size)
    return _repeated(hadamard(_power_of_two(size)), size) if kind == "head" else _dense(size)


def graph_size(head_size: int, side: str) -> int:
    """Return the size of the Hadamard matrix that llama.cpp's graph applies to K or V; 0 for none."""
    if head_size % _GRAPH_V:
        return 0
    return _power_of_two(head_size) if side == "k" else _GRAPH_V


@cache
def hadamard(size: int) -> Floats:
    """Return the orthonormal Hadamard matrix of a power of two."""
    found = np.ones((1, 1))
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    return np.asarray(found / np.sqrt(len(found)), dtype=np.float32)


def _power_of_two(size: int) -> int:
    """Return the largest power of two that divides `size`."""
    return size & -size


def _repeated(block: Floats, size: int) -> Floats:
    if size % len(block):
        raise ValueError(f"a head of {size} values is not a multiple of {len(block)}")
    return np.kron(np.eye(size // len(block), dtype=np.float32), block).astype(np.float32)


@cache
def _blocks(size: int) -> Floats:
    one = tq3_0.rotate(np.eye(tq3_0.BLOCK, dtype=np.float32)).T
    return _repeated(one, size)


@cache
def _dense(size: int) -> Floats:
    q, r = np.linalg.qr(np.random.default_rng(size).standard_normal((size, size)))
    return np.asarray(q * np.sign(np.diag(r)), dtype=np.float32)
