"""Evaluate tokens in one model with one context at a time."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.api.model import ContextSpec, ModelReport
from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.trace import buffers
from tqforge.errors import CacheTypeError, ContextLengthError, LoadError, ModelError

Tokens = list[int]
Tick = Callable[[int], None]
_NO_ROTATION = "LLAMA_ATTN_ROT_DISABLE"


@dataclass
class SavedContext:
    """A context that stays open while another is in use."""

    context: Any
    spec: ContextSpec
    used: int


class Engine:
    """A loaded model and its current context. A simulated model has no weights; contexts only report sizes."""

    def __init__(self, native: Native, path: Path, gpu_layers: int, *, simulated: bool = False) -> None:
        self._native, self._api = native, native.api
        params = self._api.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        if simulated:
            params.no_alloc, params.load_mode = True, self._api.LLAMA_LOAD_MODE_NONE
        native.log.lines.clear()
        self._model = self._api.llama_model_load_from_file(str(path).encode(), params)
        if not self._model:
            raise ModelError(f"llama.cpp could not load the model: {native.log.errors()}", where=str(path))
        self._weights = buffers.read(native.log.lines).weights
        self._vocab = self._api.llama_model_get_vocab(self._model)
        self.n_vocab: int = self._api.llama_vocab_n_tokens(self._vocab)
        self._context: Any = None
        self._spec: ContextSpec | None = None
        self._used = 0

    def report(self) -> ModelReport:
        """Return the properties of the model."""
        api = self._api
        return ModelReport(
            n_vocab=self.n_vocab,
            n_ctx_train=api.llama_model_n_ctx_train(self._model),
            n_swa=api.llama_model_n_swa(self._model),
            recurrent=bool(api.llama_model_is_recurrent(self._model) or api.llama_model_is_hybrid(self._model)),
            adds_bos=bool(api.llama_vocab_get_add_bos(self._vocab)),
            weights=self._weights,
        )

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> Tokens:
        raw = text.encode()
        room = 3 * len(raw) + 8  # a byte vocabulary encodes a space as three tokens
        buffer = (ctypes.c_int32 * room)()
        count = self._api.llama_tokenize(self._vocab, raw, len(raw), buffer, room, add_special, parse_special)
        if count < 0:
            raise ModelError(f"The tokenizer of the model rejected a text of {len(raw)} bytes.")
        return list(buffer[:count])

    def detokenize(self, tokens: Tokens) -> str:
        pieces = b"".join(self._piece(token) for token in tokens)
        return pieces.decode("utf-8", "replace")

    def _piece(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(256)
        count = self._api.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        return buffer.raw[: max(count, 0)]

    def open(self, spec: ContextSpec, callback: Any = None) -> None:
        """Open a context in place of the current one. Raises CacheTypeError with the library's reason."""
        self.close_context()
        params = self._api.llama_context_default_params()
        params.n_ctx = spec.n_ctx
        params.n_batch = params.n_ubatch = spec.n_batch
        params.n_threads = params.n_threads_batch = spec.threads
        params.type_k, params.type_v = self._native.type_id(spec.k), self._native.type_id(spec.v)
        params.flash_attn_type = 1 if spec.flash_attention else 0
        params.no_perf, params.swa_full = True, spec.swa_full
        params.offload_kqv = params.op_offload = spec.offload
        if callback is not None:
            params.cb_eval = callback
        self._native.log.lines.clear()
        with _rotation(spec.rotate):
            self._context = self._api.llama_init_from_model(self._model, params)
        if not self._context:
            raise CacheTypeError(
                f"llama.cpp could not create a context for {spec.k}/{spec.v} with {spec.n_ctx} tokens.",
                where=self._native.log.errors(),
                remedy="Choose another pair with --pairs, or a shorter length with --lengths.",
            )
        self._spec, self._used = spec, 0

    def exchange(self, other: SavedContext | None = None) -> SavedContext | None:
        """Switch to another context and return the current one, still open."""
        held = SavedContext(self._context, self._spec, self._used) if self._context and self._spec else None
        self._context, self._spec, self._used = (other.context, other.spec, other.used) if other else (None, None, 0)
        return held

    def cells(self) -> int:
        return int(self._api.llama_n_ctx(self._context))

    def close_context(self) -> None:
        if self._context:
            self._api.llama_free(self._context)
        self._context, self._spec, self._used = None, None, 0

    def keep(self, count: int) -> None:
        """Drop all but the first `count` tokens of the context."""
        if count > self._used:
            raise ContextLengthError(f"The context holds {self._used} tokens, not {count}.")
        memory = self._api.llama_get_memory(self._context)
        if count == 0:
            self._api.llama_memory_clear(memory, True)
        elif not self._api.llama_memory_seq_rm(memory, 0, count, -1):
            raise LoadError("The cache of this model cannot be truncated, so prefixes cannot be shared.")
        self._used = count

    def common(self, tokens: Tokens) -> int:
        """Return how many of `tokens` a context that was filled with their beginning already holds."""
        return min(self._used, len(tokens) - 1)

    def save(self, path: Path, tokens: Tokens) -> None:
        """Write a snapshot of the context, which holds `tokens`, to a file; an interrupted write leaves none."""
        partial = path.with_suffix(".part")
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        if not self._api.llama_state_seq_save_file(self._context, str(partial).encode(), 0, array, len(tokens)):
            partial.unlink(missing_ok=True)
            raise LoadError("The snapshot of a context could not be written.", where=str(path))
        partial.replace(path)

    def restore(self, path: Path, tokens: Tokens) -> bool:
        """Fill the context from a snapshot. Returns False if the file is no snapshot of exactly these tokens."""
        self.keep(0)
        found, count = (ctypes.c_int32 * len(tokens))(), ctypes.c_size_t(0)
        read = self._api.llama_state_seq_load_file(
            self._context, str(path).encode(), 0, found, len(tokens), ctypes.byref(count)
        )
        if not read or list(found[: count.value]) != tokens:
            self.keep(0)
            return False
        self._used = len(tokens)
        return True

    def decode(self, tokens: Tokens, *, scored: int = 0, tick: Tick | None = None) -> None:
        """Append tokens in batches and compute logits for the last `scored`, which must fit into the last batch."""
        spec = self._spec
        assert spec is not None
        if self._used + len(tokens) > self.cells():
            needed = f"{self._used + len(tokens)} tokens do not fit into a context of {self.cells()}."
            raise ContextLengthError(needed, remedy="Choose a shorter length with --lengths.")
        for start in range(0, len(tokens), spec.n_batch):
            chunk = tokens[start : start + spec.n_batch]
            left = len(tokens) - start
            with self._batch(chunk, left, scored) as batch:
                code = self._api.llama_decode(self._context, batch)
            if code != 0:
                raise LoadError(f"llama_decode returned {code}: {self._native.log.errors()}")
            self._used += len(chunk)
            if tick:
                tick(min(start + len(chunk), len(tokens)))

    @contextmanager
    def _batch(self, chunk: Tokens, left: int, scored: int) -> Iterator[Any]:
        batch = self._api.llama_batch_init(len(chunk), 0, 1)
        try:
            batch.n_tokens = len(chunk)
            for i, token in enumerate(chunk):
                batch.token[i], batch.pos[i] = token, self._used + i
                batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
                batch.logits[i] = 1 if left - i <= scored else 0
            yield batch
        finally:
            self._api.llama_batch_free(batch)

    @property
    def batch_size(self) -> int:
        assert self._spec is not None
        return self._spec.n_batch

    def logits(self, row: int = -1) -> NDArray[np.float32]:
        """Return one row of logits, shape (vocabulary,): a view that is valid until the next decode."""
        pointer = self._api.llama_get_logits_ith(self._context, row)
        if not pointer:
            raise LoadError("llama.cpp returned no logits for this token.")
        return np.ctypeslib.as_array(pointer, shape=(self.n_vocab,))

    def finite_logits(self, row: int = -1) -> NDArray[np.float32]:
        """Return `logits(row)`. Raises LoadError if they contain NaN or infinity."""
        found = self.logits(row)
        if not np.isfinite(found).all():
            raise LoadError("The logits are not finite.")
        return found

    def generate(self, limit: int, *, stop_unlike: Tokens | None = None) -> tuple[Tokens, bool]:
        """Return a greedy continuation (lowest token on a tie) and whether the model ended it.

        With `stop_unlike` it also ends after the first token that differs from these.
        """
        made: Tokens = []
        while len(made) < limit:
            token = int(self.finite_logits().argmax())
            if self._api.llama_vocab_is_eog(self._vocab, token):
                return made, True
            made.append(token)
            if stop_unlike is not None and made != stop_unlike[: len(made)]:
                return made, False
            if len(made) < limit:
                self.decode([token], scored=1)
        return made, False


@contextmanager
def _rotation(wanted: bool) -> Iterator[None]:
    """Switch off rotation unless wanted: llama.cpp reads the environment when it creates a cache."""
    before = os.environ.get(_NO_ROTATION)
    if not wanted:
        os.environ[_NO_ROTATION] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_NO_ROTATION, None)
        else:
            os.environ[_NO_ROTATION] = before
