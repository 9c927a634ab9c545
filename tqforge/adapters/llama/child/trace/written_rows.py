"""What every evaluation writes into the cache: kept row by row, or replaced by what another backend has written.

A cache write is the op SET_ROWS, with the values in float32 as its first source. Right after it the CPU's evaluation
callback sees both, so that what another backend stored can be compared with the values, and put in their place before
attention reads them.
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


class Written(CacheProbe):
    """The rows of a sequence that fills an empty cache from its first cell on. Pass `callback` to the context.

    One file per evaluation goes to the folder `keep`, or comes from the folder `follow`; with neither it only looks.
    """

    def __init__(self, native: Native, keep: Path | None, follow: Path | None) -> None:
        super().__init__(native)
        self._keep, self._follow = keep, follow
        self._start = self._count = 0
        self._theirs: dict[str, Bytes] = {}
        self._error: Exception | None = None
        # squared errors of what was written here and there, and the squared values, per cache tensor
        self._sums: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(3))

    def begin(self, start: int, count: int) -> None:
        """The next evaluation writes `count` rows, from the cell `start` on."""
        self._start, self._count = start, count
        if self._follow:
            with np.load(self._follow / f"{start}.npz") as kept:
                self._theirs = dict(kept)
            if not self._theirs:
                raise LoadError(f"No cache tensor was kept for the cells from {start} on.")

    def end(self) -> None:
        """After the evaluation. Raises what went wrong in between."""
        if self._error:
            raise self._error
        if self._theirs:
            raise LoadError(f"{SET_ROWS} was not seen for {', '.join(sorted(self._theirs))}.")
        if self._keep:
            rows = {tensor.name: self._read(tensor) for tensor in self.tensors()}
            if not rows:
                raise LoadError("The evaluation callback saw no tensor of the cache: nothing can be compared.")
            np.savez(self._keep / f"{self._start}.npz", **rows)  # type: ignore[arg-type] # its own switch is a bool

    def errors(self) -> list[tuple[str, float, float]]:
        """Per cache tensor: squared error over squared value, of what was written here and of what was there."""
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
            except Exception as error:  # nothing may leave a callback; `end` raises it
                self._error = self._error or error
        return True

    def _replace(self, node: Tensor) -> None:
        name = Tensor.from_address(node.view_src).name.decode()
        if name not in self._theirs:
            raise LoadError(f"{SET_ROWS} of {name}, of which no rows are kept or all were seen.")
        tensor = next(tensor for tensor in self.tensors() if tensor.name == name)
        theirs, ours = self._theirs.pop(name), self._read(tensor)
        if theirs.shape != ours.shape:
            raise LoadError(f"{name}: rows of {theirs.shape[1]} bytes there, of {ours.shape[1]} here.")
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
            raise LoadError(f"{SET_ROWS} of {source.name.decode()} has another shape than the rows it writes.")
        raw = ctypes.create_string_buffer(rows * width * 4)
        self._ggml.ggml_backend_tensor_get(node.src[0], raw, 0, len(raw))
        return np.frombuffer(raw.raw, dtype=np.float32).reshape(rows, width)
