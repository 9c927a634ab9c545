"""Claims that need no model: codebooks, the codec of tq3_0, and QJL by simulation."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from tqforge.core import tq3_0
from tqforge.lab.claims.claim import Claim, Evidence, Verdict, verdict
from tqforge.lab.codecs import qjl
from tqforge.lab.codecs.codebook import distortion
from tqforge.lab.codecs.codec import Codec

Floats = NDArray[np.float32]
_SIZE = 128
_ROWS = 4000


def _normal() -> Floats:
    return np.random.default_rng(2026).standard_normal((_ROWS, _SIZE)).astype(np.float32)


def _codebooks(_: Sequence[Evidence]) -> Verdict:
    found = {bits: distortion(bits) for bits in (2, 3, 4)}
    known = {2: 0.1175, 3: 0.0345, 4: 0.0095}
    holds = all(abs(found[bits] - known[bits]) < 0.01 * known[bits] for bits in known)
    return verdict(holds, ", ".join(f"{bits} bits {value:.5f}" for bits, value in found.items()))


def _zero_block(_: Sequence[Evidence]) -> Verdict:
    zeros = np.zeros((1, tq3_0.BLOCK), dtype=np.float32)
    before = tq3_0.roundtrip(zeros, tq3_0.RAW)
    after = tq3_0.roundtrip(zeros, tq3_0.DEFINED)
    spike = float(before[0, 0])
    holds = abs(abs(spike) - 1.3865) < 0.001 and not before[0, 1:].round(3).any() and not after.any()
    return verdict(holds, f"as first published {spike:.4f} at position 0, with the fix all zero")


def _norm(_: Sequence[Evidence]) -> Verdict:
    rows = tq3_0.blocks_of(_normal())
    worst = {}
    for variant in (tq3_0.RAW, tq3_0.DEFINED):
        held = tq3_0.roundtrip(rows, variant)
        worst[variant.name] = float(np.abs(np.linalg.norm(held, axis=1) / np.linalg.norm(rows, axis=1) - 1).max())
    shown = f"worst relative error of a block's norm {worst['raw']:.3f} before, {worst['defined']:.5f} after"
    return verdict(worst["defined"] < 2**-10 < worst["raw"], shown)


def left_energy(estimate: Floats, rows: Floats) -> float:
    """Return the squared error of an estimate over the energy of what it estimates."""
    return float(np.square(rows - estimate).sum() / np.square(rows).sum())


def qjl_rows() -> dict[str, float]:
    """Return what each row of the ablation leaves of a residual's energy: projection, scale, damping."""
    rows = _normal()
    gaussian = {damping: qjl.Residual(projection="gaussian", damping=damping).roundtrip(rows) for damping in (1.0, 0.7)}
    orthogonal = {
        damping: qjl.Residual(projection="orthogonal", damping=damping).roundtrip(rows) for damping in (1.0, 0.7)
    }
    root = np.float32(sqrt(_SIZE))
    return {
        "Gaussian, 1/d": left_energy(gaussian[1.0], rows),
        "Gaussian, 1/d, damped 0.7": left_energy(gaussian[0.7], rows),
        "orthonormal, 1/sqrt(d)": left_energy(orthogonal[1.0], rows),
        "orthonormal, 1/sqrt(d), damped 0.7": left_energy(orthogonal[0.7], rows),
        "orthonormal, 1/d": left_energy(orthogonal[1.0] / root, rows),
        "Gaussian, 1/sqrt(d)": left_energy(gaussian[1.0] * root, rows),
    }


def _ablation(_: Sequence[Evidence]) -> Verdict:
    found = qjl_rows()
    known = {
        "Gaussian, 1/d": pi / 2,
        "orthonormal, 1/sqrt(d)": pi / 2 - 1,
        "orthonormal, 1/sqrt(d), damped 0.7": 0.49 * pi / 2 - 2 * 0.7 + 1,
    }
    # one fixed projection of finite size: the closed forms are met to 5 %
    holds = all(abs(found[name] - value) < 0.05 * value for name, value in known.items())
    return verdict(holds, "; ".join(f"{name}: {value:.3f}" for name, value in found.items()))


def _reduction(_: Sequence[Evidence]) -> Verdict:
    left = qjl_rows()["orthonormal, 1/sqrt(d)"]
    return verdict(abs((1 - left) - (2 - pi / 2)) < 0.01, f"{1 - left:.3f} of the residual's energy is removed")


def _cosine(_: Sequence[Evidence]) -> Verdict:
    rows = _normal()
    one = Codec(bits=4, rotation="dense", block=0, residual=qjl.Residual())
    held = one.roundtrip(rows, _SIZE)
    product = (rows * held).sum(axis=1)
    cosine = float((product / (np.linalg.norm(rows, axis=1) * np.linalg.norm(held, axis=1))).mean())
    return verdict(abs(cosine - 0.997) < 0.001, f"mean cosine {cosine:.4f}")


CLAIMS = (
    Claim(
        name="codebook-distortion",
        statement="Lloyd-Max codebooks have the distortion of theory at 2, 3 and 4 bits.",
        published="0.1175 / 0.0345 / 0.0095",
        theory="the optimum of a scalar quantizer for N(0,1)",
        judge=_codebooks,
    ),
    Claim(
        name="zero-blocks",
        statement="Without a rule for zero blocks, a block of zeros decodes to a spike.",
        published="-1.3865 at position 0",
        theory="all codes are 3: the inverse rotation of a constant is one spike of sqrt(32) * 0.2451",
        judge=_zero_block,
    ),
    Claim(
        name="norm-restored",
        statement="Norm correction restores the norm of a block to the precision of fp16.",
        published="exact up to fp16",
        theory="d = |x| / |decode at d = 1|; fp16 rounds by at most 2^-11",
        judge=_norm,
    ),
    Claim(
        name="qjl-ablation",
        statement="Projection, scale and damping of the QJL stage decide what is left of a residual.",
        published="1.571, 0.571, 0.370 for Gaussian, orthogonal, orthogonal damped by 0.7",
        theory="pi/2; pi/2 - 1; g^2 pi/2 - 2 g + 1; a scale off by sqrt(d) leaves about 1 or d pi/2",
        judge=_ablation,
    ),
    Claim(
        name="qjl-reduction",
        statement="An orthogonal QJL stage removes 2 - pi/2 of the residual's energy.",
        published="44 %",
        theory="2 - pi/2 = 0.429",
        judge=_reduction,
    ),
    Claim(
        name="qjl-cosine",
        statement="4 bits with an orthogonal QJL stage keep a cosine of 99.7 %.",
        published="99.7 %",
        theory="1 / sqrt(1 + 0.0095 * 0.571) = 0.9973",
        judge=_cosine,
    ),
)
