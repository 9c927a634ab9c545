"""Replace every K and V row of an f16 cache by what a codec would hold, while the model runs.

ggml's evaluation callback sees each SET_ROWS: its first source holds the values in float32, its second the cells they
go to. Right after it the rows in the cache are overwritten, before attention reads them, so that every later token
sees what a compressed cache would hold. Rewriting a finished cache instead is too optimistic: it misses how errors
add up through the layers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.trace.tensors import CacheProbe, Tensor
from tqforge.adapters.llama.graphs import SET_ROWS
from tqforge.errors import LoadError

_ATTENTION = "FLASH_ATTN_EXT"
Floats = NDArray[np.float32]
Cells = NDArray[np.int64]
#: Takes the side ("k" or "v"), the layer, the cells and the rows that go there; returns the rows to be held.
Held = Callable[[str, int, Cells, Floats], Floats]
#: Takes the layer and the queries of an attention, of shape (tokens, heads, head size).
Seen = Callable[[int, Floats], None]


class RowRewriter(CacheProbe):
    """Pass `callback` to a context with an f16 cache; call `check` after the run.

    first, recent: cells at the beginning and before the newest one whose rows stay exact. The rows of a cell that
    leaves the recent ones are replaced when the next tokens are written. seen: is given the queries too.
    """

    def __init__(
        self, native: Native, held: Held, *, first: int = 0, recent: int = 0, seen: Seen | None = None
    ) -> None:
        super().__init__(native)
        self._held, self._first, self._recent, self._seen = held, first, recent, seen
        self._waiting: dict[str, tuple[Cells, Floats]] = {}
        self._error: Exception | None = None
        self._layer = -1
        self.rows = self.queries = 0

    def check(self) -> None:
        """Raise what went wrong inside the callback, and LoadError when no row was seen."""
        if self._error:
            raise self._error
        if not self.rows:
            raise LoadError(f"The evaluation callback saw no {SET_ROWS}: no row of the cache was rewritten.")
        if self._seen and not self.queries:
            raise LoadError(f"The evaluation callback saw no {_ATTENTION}: no query was captured.")

    def _look(self, address: int, ask: bool, user: Any) -> bool:
        super()._look(address, ask, user)
        if self._drift:
            return False
        node = Tensor.from_address(address)
        name = self._ggml.ggml_op_name(node.op).decode()
        if name != SET_ROWS and not (name == _ATTENTION and self._seen):
            return False
        if not ask:
            try:
                self._rewrite(node) if name == SET_ROWS else self._attention(node)
            except Exception as error:  # nothing may leave a callback; `check` raises it
                self._error = self._error or error
        return True

    def _rewrite(self, node: Tensor) -> None:
        cache = Tensor.from_address(node.view_src)
        name, width = cache.name.decode(), int(cache.ne[0])
        side, self._layer = _place(name)
        cells = self._read(node.src[1], np.int64).reshape(-1)
        values = self._read(node.src[0], np.float32)
        if values.size != cells.size * width or cache.nb[1] != 2 * width:
            raise LoadError(f"{name} is not an f16 cache whose rows are written whole; the lab cannot rewrite it.")
        cells, rows = self._due(name, cells, values.reshape(cells.size, width))
        self.rows += cells.size
        if not cells.size:
            return
        packed = self._held(side, self._layer, cells, rows).astype(np.float16)
        for start, end in _runs(cells):
            raw = packed[start:end].tobytes()
            self._ggml.ggml_backend_tensor_set(node.view_src, raw, int(cells[start]) * width * 2, len(raw))

    def _due(self, name: str, cells: Cells, rows: Floats) -> tuple[Cells, Floats]:
        """Return the rows to be replaced now; those of the newest `recent` cells wait."""
        if self._recent:
            if name in self._waiting:
                before, kept = self._waiting[name]
                older = before < cells[0]  # a context that was cut back writes these cells again
                cells, rows = np.concatenate([before[older], cells]), np.concatenate([kept[older], rows])
            late = cells > cells[-1] - self._recent
            self._waiting[name] = cells[late], rows[late]
            cells, rows = cells[~late], rows[~late]
        due = cells >= self._first
        return cells[due], rows[due]

    def _attention(self, node: Tensor) -> None:
        assert self._seen is not None
        self.queries += 1
        queries = Tensor.from_address(node.src[0])
        if queries.ne[3] != 1 or not queries.data:
            raise LoadError("The queries of an attention are not in the memory of the CPU.")
        span = sum(int(n - 1) * int(step) for n, step in zip(queries.ne, queries.nb, strict=True)) + 4
        raw = ctypes.string_at(queries.data, span)
        shape = (int(queries.ne[1]), int(queries.ne[2]), int(queries.ne[0]))
        strides = (int(queries.nb[1]), int(queries.nb[2]), int(queries.nb[0]))
        self._seen(self._layer, np.ndarray(shape, np.float32, raw, 0, strides))

    def _read(self, address: int, dtype: type[Any]) -> NDArray[Any]:
        raw = ctypes.create_string_buffer(self._ggml.ggml_nbytes(address))
        self._ggml.ggml_backend_tensor_get(address, raw, 0, len(raw))
        return np.frombuffer(raw.raw, dtype=dtype)


def _place(name: str) -> tuple[str, int]:
    """Return the side and the layer of a cache tensor such as `cache_k_l12`."""
    kind, _, layer = name.removeprefix("cache_").partition("_l")
    if kind not in ("k", "v") or not layer.isdigit():
        raise LoadError(f"{name} is not a tensor of a K/V cache.")
    return kind, int(layer)


def _runs(cells: Cells) -> list[tuple[int, int]]:
    """Return the index ranges of neighbouring cells."""
    breaks = np.flatnonzero(np.diff(cells) != 1) + 1
    edges = [0, *breaks.tolist(), len(cells)]
    return list(pairwise(edges))
