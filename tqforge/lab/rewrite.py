"""Replace every K and V row of an f16 cache by what a codec would hold, while the model runs.

ggml's evaluation callback sees each SET_ROWS: its first source holds the values in float32, its second the cells they
go to. Right after it the rows in the cache are overwritten, before attention reads them, so that every later token
sees what a compressed cache would hold. Rewriting a finished cache instead is too optimistic: it misses how errors
add up through the layers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.trace.tensors import CacheProbe, Tensor
from tqforge.adapters.llama.placement import SET_ROWS
from tqforge.errors import LoadError

Floats = NDArray[np.float32]
#: Takes the side ("k" or "v"), the layer, the cells and the rows that go there; returns the rows to be held.
Held = Callable[[str, int, NDArray[np.int64], Floats], Floats]


class RowRewriter(CacheProbe):
    """Pass `callback` to a context with an f16 cache; call `check` after each evaluation."""

    def __init__(self, native: Native, held: Held) -> None:
        super().__init__(native)
        self._held = held
        self._error: Exception | None = None
        self.rows = 0

    def check(self) -> None:
        """Raise what went wrong inside the callback, and LoadError when no row was rewritten."""
        if self._error:
            raise self._error
        if not self.rows:
            raise LoadError(f"The evaluation callback saw no {SET_ROWS}: no row of the cache was rewritten.")

    def _look(self, address: int, ask: bool, user: Any) -> bool:
        super()._look(address, ask, user)
        if self._drift:
            return False
        node = Tensor.from_address(address)
        if self._ggml.ggml_op_name(node.op).decode() != SET_ROWS:
            return False
        if not ask:
            try:
                self._rewrite(node)
            except Exception as error:  # nothing may leave a callback; `check` raises it
                self._error = self._error or error
        return True

    def _rewrite(self, node: Tensor) -> None:
        cache = Tensor.from_address(node.view_src)
        name = cache.name.decode()
        side, layer = _place(name)
        cells = self._read(node.src[1], np.int64).reshape(-1)
        values = self._read(node.src[0], np.float32)
        width = int(cache.ne[0])
        if values.size != cells.size * width or cache.nb[1] != 2 * width:
            raise LoadError(f"{name} is not an f16 cache whose rows are written whole; the lab cannot rewrite it.")
        rows = self._held(side, layer, cells, values.reshape(cells.size, width)).astype(np.float16)
        for first, last in _runs(cells):
            raw = rows[first:last].tobytes()
            self._ggml.ggml_backend_tensor_set(node.view_src, raw, int(cells[first]) * width * 2, len(raw))
        self.rows += cells.size

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


def _runs(cells: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the index ranges of neighbouring cells."""
    breaks = np.flatnonzero(np.diff(cells) != 1) + 1
    edges = [0, *breaks.tolist(), len(cells)]
    return list(zip(edges[:-1], edges[1:], strict=True))
