"""Codecs as data: a base quantizer, a rotation, a scale rule, a residual stage; and what they cost in bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import gguf
import numpy as np
from numpy.typing import NDArray

from tqforge.core import tq3_0
from tqforge.lab.codecs import qjl, rotation
from tqforge.lab.codecs.codebook import lloyd_max
from tqforge.lab.codecs.rotation import Rotation

Floats = NDArray[np.float32]
Scale = Literal["rms", "norm", "least-squares", "search"]
_SCALE_BITS = 16  # one fp16 number per block
_SEARCHED = np.exp(np.linspace(-0.3, 0.3, 6)).astype(np.float32)
_TINY = np.float32(1e-12)


@dataclass(frozen=True, kw_only=True)
class Codec:
    """One way to store a row of K or V. Without `ggml` and `bits` the values stay as they are.

    ggml: name of a type of ggml, quantized by gguf-py. bits: size of a Lloyd-Max codebook. block: values that share a
    scale (0: the whole head). residual: a QJL stage of one bit per value on what the codebook leaves.
    """

    ggml: str = ""
    bits: int = 0
    rotation: Rotation = "none"
    block: int = 32
    scale: Scale = "norm"
    residual: qjl.Residual | None = None

    def bits_per_value(self, head_size: int) -> float:
        """Return the bits per value, all side information counted."""
        if self.ggml == "tq3_0":
            return 8 * tq3_0.BLOCK_BYTES / tq3_0.BLOCK
        if self.ggml:
            count, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[self.ggml.upper()]]
            return 8 * size / count
        if not self.bits:
            return 16.0
        bits = self.bits + _SCALE_BITS / (self.block or head_size)
        return bits + (self.residual.bits_per_value(head_size) if self.residual else 0.0)

    def roundtrip(self, rows: Floats, head_size: int) -> Floats:
        """Return what a cache would hold of `rows`, an array whose last axis is made of whole heads."""
        if not self.ggml and not self.bits:
            return rows
        heads = np.ascontiguousarray(rows, dtype=np.float32).reshape(-1, head_size)
        turn = rotation.matrix(self.rotation, head_size)
        turned = heads if turn is None else heads @ turn.T
        held = self._quantize(turned)
        if self.residual:
            held = held + self.residual.roundtrip(turned - held)
        return (held if turn is None else held @ turn).reshape(rows.shape).astype(np.float32)

    def _quantize(self, heads: Floats) -> Floats:
        if self.ggml == "tq3_0":
            return tq3_0.roundtrip(heads)
        if self.ggml:
            kind = gguf.GGMLQuantizationType[self.ggml.upper()]
            return np.asarray(gguf.dequantize(gguf.quantize(heads, kind), kind), dtype=np.float32).reshape(heads.shape)
        blocks = heads.reshape(-1, self.block or heads.shape[-1])
        return self._codebook(blocks).reshape(heads.shape)

    def _codebook(self, blocks: Floats) -> Floats:
        centroids, boundaries = (part.astype(np.float32) for part in lloyd_max(self.bits))
        rms = np.sqrt(np.mean(np.square(blocks), axis=1, keepdims=True)) + _TINY
        if self.scale == "search":
            chosen = _best_angle(blocks / rms, centroids, boundaries)
        else:
            chosen = centroids[np.searchsorted(boundaries, blocks / rms)]
        return chosen * self._d(blocks, chosen, rms).astype(np.float16).astype(np.float32)

    def _d(self, blocks: Floats, chosen: Floats, rms: Floats) -> Floats:
        """Return the stored scale of each block."""
        if self.scale == "rms":
            return rms
        energy = np.square(chosen).sum(axis=1, keepdims=True)
        if self.scale == "least-squares":
            return np.asarray((blocks * chosen).sum(axis=1, keepdims=True) / energy)
        return np.asarray(np.sqrt(np.square(blocks).sum(axis=1, keepdims=True) / energy))


def _best_angle(units: Floats, centroids: Floats, boundaries: Floats) -> Floats:
    """Return the centroids of the scale that keeps each block's direction best, of six around the rms."""
    best = np.full((len(units), 1), -1.0, dtype=np.float32)
    found = np.zeros_like(units)
    for factor in _SEARCHED:
        chosen = centroids[np.searchsorted(boundaries, units / factor)]
        dot = (units * chosen).sum(axis=1, keepdims=True)
        score = dot * dot / np.square(chosen).sum(axis=1, keepdims=True)
        better = score > best
        best, found = np.where(better, score, best), np.where(better, chosen, found)
    return found
