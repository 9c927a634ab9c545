"""The reference codec of `tq3_0` in NumPy: the oracle that every encoder in C and Metal is compared with.

A block of 32 values is rotated (signs, 32-point Walsh-Hadamard transform, 1/sqrt(32)), divided by the best of six
scales around its rms and stored as 3-bit Lloyd-Max codes beside one fp16 scale `d`: 14 bytes. All float32 steps are
done in the order of the C reference, so that codes and `d` are equal bit for bit: butterflies with distance 1, 2, 4,
8, 16 before the normalization, sums of squares in float64 in eight lanes, boundaries compared strictly, the search in
integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tqforge.core.cache_types import TQ3_0_BLOCK, TQ3_0_BLOCK_BYTES

Floats = NDArray[np.float32]
Codes = NDArray[np.uint8]
Packed = NDArray[np.uint8]

BLOCK: Final = TQ3_0_BLOCK
BLOCK_BYTES: Final = TQ3_0_BLOCK_BYTES
CENTROIDS: Final = np.array([-2.1519, -1.3439, -0.7560, -0.2451, 0.2451, 0.7560, 1.3439, 2.1519], dtype=np.float32)
BOUNDARIES: Final = np.array([-1.7479, -1.0500, -0.5005, 0.0, 0.5005, 1.0500, 1.7479], dtype=np.float32)
#: Mean squared error of the codebook on N(0,1): the optimum for 3 bits.
DISTORTION: Final = 0.03455
SIGNS: Final[Floats] = np.where(
    (np.arange(BLOCK, dtype=np.uint64) * np.uint64(0x9E3779B9)).astype(np.uint32) >> np.uint32(31), -1.0, 1.0
).astype(np.float32)

#: The search works in units of rms/4096: centroid magnitudes as small integers, and their boundaries for each scale.
MAGNITUDES: Final = np.array([10, 31, 55, 88], dtype=np.int32)
SCALES: Final = np.exp(0.12 * np.arange(6) - 0.3)
_STEPS: Final = np.float32(4096)
_SEARCH: Final = np.rint(4096 * SCALES[:, None] * BOUNDARIES[4:].astype(np.float64)).astype(np.int32)

_RSQRT: Final = np.float32(0.17677669529663687)
_TINY_RMS: Final = np.float32(1e-10)
_TINY_SUM: Final = 1e-20
_RMS_LIMIT: Final = np.float32(262144.0)
_FP16_LIMIT: Final = np.float32(65520.0)
_FP16_NAN: Final = np.uint16(0x7E00)


@dataclass(frozen=True)
class Variant:
    """One generation of the encoder; layout and decoder are the same for all."""

    name: str
    corrected: bool  # d restores the norm of the block, else d is its rms
    defined: bool  # zero and non-finite blocks have a rule, else a tiny rms is replaced by 1
    searched: bool  # the scale for the codes is the best of SCALES times the rms, else the rms


RAW: Final = Variant("raw", corrected=False, defined=False, searched=False)
CORRECTED: Final = Variant("corrected", corrected=True, defined=False, searched=False)
DEFINED: Final = Variant("defined", corrected=True, defined=True, searched=False)
FINAL: Final = Variant("final", corrected=True, defined=True, searched=True)
VARIANTS: Final = (RAW, CORRECTED, DEFINED, FINAL)


def blocks_of(values: Floats) -> Floats:
    """Reshape an array whose last axis holds whole blocks to rows of 32. Raises ValueError otherwise."""
    flat = np.ascontiguousarray(values, dtype=np.float32)
    if flat.shape[-1] % BLOCK:
        raise ValueError(f"{flat.shape[-1]} values are not whole blocks of {BLOCK}")
    return flat.reshape(-1, BLOCK)


def hadamard(rows: Floats) -> Floats:
    """Apply the unnormalized 32-point Walsh-Hadamard transform to each row, stage by stage in float32."""
    out = rows
    length = 1
    while length < BLOCK:
        parts = out.reshape(len(rows), BLOCK // (2 * length), 2, length)
        low, high = parts[:, :, 0], parts[:, :, 1]
        out = np.stack([low + high, low - high], axis=2)
        length *= 2
    return out.reshape(len(rows), BLOCK)


def rotate(rows: Floats) -> Floats:
    """Rotate each row: orthonormal, so scalar products and norms are kept."""
    return hadamard(rows * SIGNS) * _RSQRT


def sum_of_squares(rows: Floats) -> NDArray[np.float64]:
    """Sum the squares of each row in float64 in eight lanes, in the order of the C code."""
    lanes = np.square(rows.astype(np.float64)).reshape(len(rows), 4, 8)
    total: NDArray[np.float64] = lanes[:, 0] + lanes[:, 1] + lanes[:, 2] + lanes[:, 3]
    for half in (4, 2, 1):
        total = total[:, :half] + total[:, half:]
    return total[:, 0]


def code_of(values: Floats) -> Codes:
    """Count the boundaries strictly below each value; NaN gives 0."""
    codes: Codes = (values[..., None] > BOUNDARIES).sum(axis=-1).astype(np.uint8)
    return codes


def searched_codes(steps: NDArray[np.int32]) -> Codes:
    """Encode rows in units of rms/4096 with the scale that keeps their direction best; the first of equals."""
    size = np.abs(steps)
    best = np.full(len(steps), -1, dtype=np.float32)
    count = np.zeros(steps.shape, dtype=np.uint8)
    for bounds in _SEARCH:
        above = (size[..., None] > bounds).sum(axis=-1).astype(np.uint8)
        chosen = MAGNITUDES[above]
        dot = (size * chosen).sum(axis=1).astype(np.float32)
        score = dot * dot / np.square(chosen).sum(axis=1).astype(np.float32)
        better = score > best
        best, count[better] = np.where(better, score, best), above[better]
    return np.where(steps > 0, 4 + count, 3 - count).astype(np.uint8)


def pack(codes: Codes) -> Packed:
    """Pack 32 codes into 12 bytes: code k of a group of 8 at bit 3k of a 24-bit little-endian word."""
    words = np.bitwise_or.reduce(
        codes.reshape(-1, 4, 8).astype(np.uint32) << np.arange(0, 24, 3, dtype=np.uint32), axis=-1
    )
    packed: Packed = (words[..., None] >> np.array([0, 8, 16], dtype=np.uint32)).astype(np.uint8).reshape(-1, 12)
    return packed


def unpack(packed: Packed) -> Codes:
    """Invert `pack`."""
    triples = packed.reshape(-1, 4, 3).astype(np.uint32)
    words = triples[..., 0] | triples[..., 1] << np.uint32(8) | triples[..., 2] << np.uint32(16)
    codes: Codes = ((words[..., None] >> np.arange(0, 24, 3, dtype=np.uint32)) & np.uint32(7)).astype(np.uint8)
    return codes.reshape(-1, BLOCK)


def encode(values: Floats, variant: Variant = FINAL) -> Packed:
    """Encode values to blocks of 14 bytes, one row per 32 values."""
    rows = blocks_of(values)
    with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
        total = sum_of_squares(rows)
        rms = np.sqrt(total / BLOCK).astype(np.float32)
        zero = total < _TINY_SUM if variant.defined else np.zeros(len(rows), dtype=bool)
        unit = np.zeros(len(rows), dtype=bool) if variant.defined else rms < _TINY_RMS
        rms = np.where(zero | unit, np.float32(1), rms)
        codes = _codes(hadamard(rows * SIGNS), rms, variant)
        d = np.sqrt(total / sum_of_squares(CENTROIDS[codes])).astype(np.float32) if variant.corrected else rms
        d = np.where(zero, np.float32(0), np.where(unit, np.float32(1), d))
        scale = d.astype(np.float16).view(np.uint16)
        refused = ~((d < _FP16_LIMIT) & (rms < _RMS_LIMIT)) if variant.defined else np.zeros(len(rows), dtype=bool)
    codes[zero | refused] = 0
    scale = np.where(refused, _FP16_NAN, scale).astype("<u2")
    return np.concatenate([scale.view(np.uint8).reshape(-1, 2), pack(codes)], axis=1)


def _codes(rotated: Floats, rms: Floats, variant: Variant) -> Codes:
    if not variant.searched:
        return code_of(rotated * (_RSQRT / rms)[:, None])
    storable = rms < _RMS_LIMIT  # NaN is not
    steps = np.where(storable[:, None], rotated * (_STEPS * _RSQRT / rms)[:, None], np.float32(0))
    return searched_codes(steps.astype(np.int32))


def decode(packed: Packed) -> Floats:
    """Decode blocks of 14 bytes to rows of 32 values."""
    rows = packed.reshape(-1, BLOCK_BYTES)
    d = np.ascontiguousarray(rows[:, :2]).view("<f2")[:, 0].astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        return hadamard(CENTROIDS[unpack(rows[:, 2:])]) * SIGNS * (d * _RSQRT)[:, None]


def roundtrip(values: Floats, variant: Variant = FINAL) -> Floats:
    """Encode and decode values, as a cache of that type would hold them."""
    return decode(encode(values, variant)).reshape(values.shape)


def codebook_distortion(samples: Floats, centroids: Floats = CENTROIDS) -> float:
    """Return the mean squared error of a codebook on samples of N(0,1), without rotation and scale."""
    error = samples - centroids[code_of(samples)]
    return float(np.square(error, dtype=np.float64).mean())
