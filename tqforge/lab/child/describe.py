"""Statistics of real keys, values and queries, layer by layer."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from tqforge.core import tq3_0
from tqforge.lab.codecs.codec import Codec
from tqforge.lab.codecs.registry import codec
from tqforge.lab.request import Capture, LayerFacts

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
_BITS = (2, 3, 4)
#: Codecs whose attention weights are compared with those of exact keys.
ATTENTION_CODECS = ("lm3-wide-rms", "lm3-wide", "lm4-wide", "tq3_0", "q4_0-head")
_QUERIES = 64
_TINY = 1e-20


class Collector:
    """Keeps rows and the last queries of an uncompressed run. `held` and `seen` are for a RowRewriter."""

    def __init__(self, head_k: int) -> None:
        self._head = head_k
        self._rows: dict[tuple[str, int], list[Floats]] = defaultdict(list)
        self._queries: dict[int, Floats] = {}

    def held(self, side: str, layer: int, _cells: NDArray[np.int64], rows: Floats) -> Floats:
        self._rows[side, layer].append(rows)
        return rows

    def seen(self, layer: int, queries: Floats) -> None:
        self._queries[layer] = queries[-_QUERIES:]

    def describe(self) -> Capture:
        layers = sorted({layer for _, layer in self._rows})
        facts = tuple(self._layer(layer) for layer in layers)
        return Capture(tokens=sum(len(rows) for rows in self._rows["k", layers[0]]), layers=facts)

    def _layer(self, layer: int) -> LayerFacts:
        k, v = (np.concatenate(self._rows[side, layer]) for side in ("k", "v"))
        heads = k.reshape(-1, self._head)
        blocks = tq3_0.blocks_of(k)
        turned = tq3_0.rotate(blocks)
        everything = tq3_0.blocks_of(np.concatenate([k, v], axis=1))
        return LayerFacts(
            layer=layer,
            k_norm=float(np.linalg.norm(heads, axis=1).mean()),
            v_norm=float(np.linalg.norm(v.reshape(len(heads), -1), axis=1).mean()),
            kurtosis=excess_kurtosis(blocks),
            kurtosis_rotated=excess_kurtosis(turned),
            distortion={bits: distortion(blocks, bits) for bits in _BITS},
            zero_blocks=float((~everything.any(axis=1)).mean()),
            attention_kl={name: self._attention_kl(layer, k, codec(name)) for name in ATTENTION_CODECS},
        )

    def _attention_kl(self, layer: int, keys: Floats, one: Codec) -> float:
        """Return the mean over the last queries and all heads; every query sees all keys that came before it."""
        queries = self._queries[layer]
        held = one.roundtrip(keys, self._head)
        count, heads, size = (int(length) for length in queries.shape)
        kv_heads = keys.shape[1] // size
        total = 0.0
        for head in range(heads):
            kv = slice((head * kv_heads // heads) * size, (head * kv_heads // heads + 1) * size)
            exact, seen = (np.asarray(queries[:, head] @ part[:, kv].T / np.sqrt(size)) for part in (keys, held))
            total += attention_kl(exact, seen, len(keys) - count)
        return total / heads


def attention_kl(exact: Floats, seen: Floats, first: int) -> float:
    """Return the mean KL in nats of causal attention weights; query i sees the keys up to `first` + i."""
    weights = [_causal_log_softmax(scores, first) for scores in (exact, seen)]
    visible = np.isfinite(weights[0])
    difference = np.where(visible, weights[0] - np.where(visible, weights[1], 0), 0)
    return float((np.exp(weights[0]) * difference).sum(axis=1).mean())


def _causal_log_softmax(scores: Floats, first: int) -> Doubles:
    wide = scores.astype(np.float64)
    places = np.arange(scores.shape[1])
    wide[places[None, :] > first + np.arange(len(scores))[:, None]] = -np.inf
    wide -= wide.max(axis=1, keepdims=True)
    return np.asarray(wide - np.log(np.exp(wide).sum(axis=1, keepdims=True)))


def excess_kurtosis(blocks: Floats) -> float:
    """Return the excess kurtosis of all values after every block was scaled to unit rms; 0 for a normal one."""
    wide = blocks.astype(np.float64)
    rms = np.sqrt(np.square(wide).mean(axis=1, keepdims=True) + _TINY)
    units = wide / rms
    centred = units - units.mean()
    return float(np.mean(centred**4) / np.mean(centred**2) ** 2 - 3)


def distortion(blocks: Floats, bits: int) -> float:
    """Return squared error over energy with the plain rms as the scale, after the rotation of tq3_0."""
    held = Codec(bits=bits, rotation="block", scale="rms").roundtrip(blocks, tq3_0.BLOCK)
    return float(np.square(blocks - held).sum() / (np.square(blocks).sum() + _TINY))
