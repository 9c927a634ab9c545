"""Requests about the KV cache: contents, size, quality and codecs."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters.llama.api.messages import Done, Message, Request
from tqforge.adapters.llama.api.model import ContextSpec


class CacheTensor(Message):
    """One K or V tensor of the cache as the library allocated it."""

    name: str
    type: str
    width: int
    cells: int
    bytes: int
    buffer: str


class CacheReport(Message):
    """The tensors of a cache. buffers: bytes of the backend buffers that hold them. peak_rss: bytes of the process."""

    tensors: tuple[CacheTensor, ...]
    buffers: int
    cells: int
    rotation: dict[str, bool]
    saved_blocks: int
    peak_rss: int


class ReadCache(Request[CacheReport]):
    """Open a context, write `tokens` into its cache and describe its tensors; `save` keeps their values."""

    spec: ContextSpec
    tokens: tuple[int, ...]
    save: Path | None = None


class Scored(Message):
    """Per scored token: -log p in nats, KL in nats and whether the top token agrees (None without a reference).

    made: the continuation after each start. equal: how many of its tokens match the reference.
    """

    nll: tuple[float, ...]
    kl: tuple[float | None, ...]
    same_top: tuple[bool | None, ...]
    made: tuple[tuple[int, ...], ...]
    equal: tuple[int, ...]
    rotation: dict[str, bool]


class Score(Request[Scored]):
    """Open a context and read `tokens`: score `windows` (first token, count) and continue after each of `starts`.

    Without `reference` this run is the reference: its logits go to the file `save`, its continuations are `made`.
    """

    spec: ContextSpec
    tokens: tuple[int, ...]
    windows: tuple[tuple[int, int], ...]
    starts: tuple[int, ...] = ()
    limit: int = 0
    reference: Path | None = None
    made: tuple[tuple[int, ...], ...] | None = None
    save: Path | None = None


class CachePart(Message):
    """One part of the KV cache: all layers, or those with a sliding window."""

    sliding: bool
    cells: int
    layers: int
    bytes: int


class Reserved(Message):
    """The bytes that llama.cpp allocated for a context."""

    cells: int
    weights: int
    compute: int
    caches: tuple[CachePart, ...]


class Reserve(Request[Reserved]):
    """Open a context, report its allocations and close it. simulated: load no weights and allocate nothing."""

    spec: ContextSpec
    simulated: bool = False


class EncoderList(Message):
    """Symbol names."""

    encoders: tuple[str, ...]


class ListEncoders(Request[EncoderList]):
    """List the exported encoders of a type."""

    type: str


class Encode(Request[Done]):
    """Quantize the float32 array in the file `values` with one encoder; the bytes go to `out`."""

    type: str
    encoder: str
    values: Path
    out: Path


class Decode(Request[Done]):
    """Dequantize the byte rows in the file `packed`; float32 rows go to `out`."""

    type: str
    packed: Path
    out: Path
