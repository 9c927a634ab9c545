"""Keep the rows that an evaluation writes into the cache, or replace them by those of another backend.

A cache write is the op SET_ROWS whose first source holds the float32 values. The CPU's evaluation callback runs right
after it, so the rows of another backend can be compared with the values and put in place before attention reads them.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.child import codec
from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.trace.tensors import CacheProbe, CacheTensor, Tensor
from tqforge.adapters.llama.graphs import SET_ROWS
from tqforge.errors import LoadError

Bytes = NDArray[np.uint8]
Values = NDArray[np.float32]


class WrittenRows(CacheProbe):
    """The rows of a sequence that fills an empty cache from its first cell. Pass `callback` to the context.

    keep: folder for one file per evaluation. follow: folder whose files replace what is written here.
    """

    def __init__(self, native: Native, keep: Path | None, follow: Path | None) -> None:
        super().__init__(native)
        self._keep, self._follow = keep, follow
        self._start = self._count = 0
        self._theirs: dict[str, Bytes] = {}
        self._error: Exception | None = None
        # per cache tensor: squared errors of the rows from here and from elsewhere, and the squared values
        self._sums: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(3))

    def begin(self, start: int, count: int) -> None:
        """Announce an evaluation that writes `count` rows, starting at cell `start`."""
        self._start, self._count = start, count
        if self._follow:
            with np.load(self._follow / f"{start}.npz") as kept:
                self._theirs = dict(kept)
            if not self._theirs:
                raise LoadError(f"No cache rows were kept for the evaluation at cell {start}.")

    def end(self) -> None:
        """Finish the evaluation. Raises the first error of the callback, and LoadError for rows that were not seen."""
        if self._error:
            raise self._error
        if self._theirs:
            raise LoadError(f"No {SET_ROWS} was evaluated for {', '.join(sorted(self._theirs))}.")
        if self._keep:
            rows: dict[str, Any] = {tensor.name: self._read(tensor) for tensor in self.tensors()}
            if not rows:
                raise LoadError("The evaluation callback saw no cache tensor, so nothing can be compared.")
            np.savez(self._keep / f"{self._start}.npz", **rows)

    def errors(self) -> list[tuple[str, float, float]]:
        """Return per cache tensor the relative squared error of the rows written here and of those from elsewhere."""
        return [(name, here / total, there / total) for name, (here, there, total) in sorted(self._sums.items())]

    def _look(self, address: int, ask: bool, user: Any) -> bool:
        super()._look(address, ask, user)
        if self._drift or not self._follow:
            return False
        node = Tensor.from_address(address)
        if self._ggml.ggml_op_name(node.op).decode() != SET_ROWS:
            return False
        if not ask:
            try:
                self._replace(node)
            except Exception as error:  # must not leave a ctypes callback; `end` raises it
                self._error = self._error or error
        return True

    def _replace(self, node: Tensor) -> None:
        name = Tensor.from_address(node.view_src).name.decode()
        if name not in self._theirs:
            raise LoadError(f"Unexpected {SET_ROWS} of {name}: its rows were not kept, or were replaced already.")
        tensor = next(tensor for tensor in self.tensors() if tensor.name == name)
        theirs, ours = self._theirs.pop(name), self._read(tensor)
        if theirs.shape != ours.shape:
            raise LoadError(f"{name}: a kept row has {theirs.shape[1]} bytes, a row here {ours.shape[1]}.")
        values = self._values(node, ours.shape[0], tensor.report.width)
        for place, packed in enumerate((ours, theirs)):
            error = codec.values(self._native, tensor.report.type, packed).astype(np.float64) - values
            self._sums[name][place] += float((error**2).sum())
        self._sums[name][2] += float((values.astype(np.float64) ** 2).sum())
        raw = theirs.tobytes()
        self._ggml.ggml_backend_tensor_set(tensor.address, raw, self._start * theirs.shape[1], len(raw))

    def _read(self, tensor: CacheTensor) -> Bytes:
        size = tensor.report.bytes // tensor.report.cells
        raw = ctypes.create_string_buffer(self._count * size)
        self._ggml.ggml_backend_tensor_get(tensor.address, raw, self._start * size, len(raw))
        return np.frombuffer(raw.raw, dtype=np.uint8).reshape(self._count, size)

    def _values(self, node: Tensor, rows: int, width: int) -> Values:
        source = Tensor.from_address(node.src[0])
        if source.ne[0] * source.ne[1] * source.ne[2] != rows * width:
            raise LoadError(f"The source {source.name.decode()} of {SET_ROWS} does not have the shape of the rows.")
        raw = ctypes.create_string_buffer(rows * width * 4)
        self._ggml.ggml_backend_tensor_get(node.src[0], raw, 0, len(raw))
        return np.frombuffer(raw.raw, dtype=np.float32).reshape(rows, width)
