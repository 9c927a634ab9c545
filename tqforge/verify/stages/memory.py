"""Compare the allocated bytes of each cache with what the block sizes give."""

from __future__ import annotations

from tqforge.adapters.gguf_io import ModelFacts
from tqforge.adapters.llama.api.cache import CacheReport, CacheTensor, ReadCache
from tqforge.core.pair import Pair
from tqforge.report.schema.rows import MemoryRow
from tqforge.report.schema.stages import MemoryStage
from tqforge.verify.session import Session, padded

_TOKENS = 4
_METHOD = (
    "Bytes are those of the cache's own tensors (ggml_nbytes), read while llama.cpp wrote a token; the formula is "
    "values / block size x block bytes of the pair's types, the values counted from the GGUF (cells x KV heads x head "
    "size, every layer that has a cache). Peak memory is that of the child process so far."
)


def run(session: Session) -> MemoryStage:
    """Open a context per pair, write four tokens and read its tensors."""
    child = session.model("memory")
    n_ctx = padded(min(session.settings.memory_context, session.facts.trained_context))
    tokens = session.tokenize(child, ["Four tokens or more are enough."])[0][:_TOKENS]
    rows = []
    pairs = session.settings.with_control
    with session.meter("memory", len(pairs)) as meter:
        for done, pair in enumerate(pairs, 1):
            reply = session.ask(child, ReadCache(spec=session.context(pair, n_ctx), tokens=tuple(tokens)))
            rows.append(row_of(pair, reply, child.loaded.sizes(), session.facts))
            meter.update(done, str(pair))
    return stage_of(rows, session.facts.swa_window)


def row_of(pair: Pair, reply: CacheReport, sizes: dict[str, tuple[int, int]], facts: ModelFacts) -> MemoryRow:
    """Sum the tensors of one cache by side; the formula takes heads and head sizes from the GGUF."""
    sides: dict[str, list[CacheTensor]] = {"k": [], "v": []}
    for tensor in reply.tensors:
        sides[_side_and_layer(tensor.name)[0]].append(tensor)
    heads = {"k": facts.head_k, "v": facts.head_v}
    values = {side: sum(heads[side] * _heads_of(t, facts) * reply.cells for t in sides[side]) for side in sides}
    measured = {side: sum(t.bytes for t in found) for side, found in sides.items()}
    wanted = {"k": pair.k, "v": pair.v}
    return MemoryRow(
        pair=pair,
        n_ctx=reply.cells,
        k_measured=measured["k"],
        v_measured=measured["v"],
        k_formula=_formula(values["k"], sizes[wanted["k"]]),
        v_formula=_formula(values["v"], sizes[wanted["v"]]),
        k_values=values["k"],
        v_values=values["v"],
        buffers=reply.buffers,
        k_type=_types(sides["k"]),
        v_type=_types(sides["v"]),
        device=", ".join(sorted({t.buffer for t in reply.tensors})),
        peak_rss=reply.peak_rss,
    )


def _side_and_layer(name: str) -> tuple[str, int]:
    """Parse `cache_k_l12` (a tag may precede the side) as side k of layer 12."""
    side, _, layer = name.rpartition("_l")
    return side[-1], int(layer.split(" ")[0])


def _heads_of(tensor: CacheTensor, facts: ModelFacts) -> int:
    return facts.kv_heads[_side_and_layer(tensor.name)[1]]


def _formula(values: int, size: tuple[int, int]) -> int:
    block, nbytes = size
    return values // block * nbytes


def _types(tensors: list[CacheTensor]) -> str:
    return "+".join(sorted({t.type for t in tensors}))


def stage_of(rows: list[MemoryRow], swa_window: int | None) -> MemoryStage:
    """Record the rows with how they were measured."""
    notes = [_METHOD]
    if swa_window:
        notes.append(
            f"The model has layers with a sliding window of {swa_window} tokens; llama.cpp sizes those itself."
        )
    return MemoryStage(rows=tuple(rows), notes=tuple(notes))
