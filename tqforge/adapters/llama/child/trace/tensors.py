"""Find the tensors of the KV cache through the evaluation callback, with their exact sizes and contents.

The log only prints MiB with two decimals. The graph that writes a token names the tensors (`cache_k_l0`), and ggml
returns the bytes and the buffer of each.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tqforge.adapters.llama.api.cache import CacheTensor as CacheTensorReport
from tqforge.adapters.llama.child.native import Native
from tqforge.errors import LoadError

_MAX_DIMS, _MAX_SRC, _MAX_NAME, _OP_PARAMS = 4, 10, 64, 16


class Tensor(ctypes.Structure):
    """The leading fields of `struct ggml_tensor`; the layout is checked against `ggml_get_name` before use."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * _MAX_DIMS),
        ("nb", ctypes.c_size_t * _MAX_DIMS),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * _OP_PARAMS),
        ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * _MAX_SRC),
        ("view_src", ctypes.c_void_p),
        ("view_offs", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("name", ctypes.c_char * _MAX_NAME),
    )


@dataclass(frozen=True)
class CacheTensor:
    """A K or V tensor of the cache and its address in this process."""

    report: CacheTensorReport
    address: int

    @property
    def name(self) -> str:
        return self.report.name


class CacheProbe:
    """Collects the cache tensors of a graph: pass `callback` to the context, decode a token, then call `tensors`."""

    def __init__(self, native: Native) -> None:
        self._native, self._ggml = native, native.ggml
        self.callback: Any = native.api.ggml_backend_sched_eval_callback(self._look)
        self._roots: dict[str, int] = {}
        self._drift = False

    def _look(self, address: int, _ask: bool, _user: Any) -> bool:
        tensor = Tensor.from_address(address)
        if self._ggml.ggml_get_name(address) - address != Tensor.name.offset:
            self._drift = True
            return False
        for other in (tensor.view_src, *tensor.src):
            if other:
                self._note(other)
        return False

    def _note(self, address: int) -> None:
        root = Tensor.from_address(address).view_src or address
        name = Tensor.from_address(root).name.decode("ascii", "replace")
        if name.startswith("cache_"):
            self._roots[name] = root

    def tensors(self) -> list[CacheTensor]:
        """Return the cache tensors by name. Raises LoadError if the layout of ggml_tensor differs from ours."""
        if self._drift:
            raise LoadError("The layout of struct ggml_tensor is not as expected; the cache cannot be measured.")
        names = {info.id: info.name for info in self._native.types.values()}
        found = []
        for name, address in sorted(self._roots.items()):
            tensor = Tensor.from_address(address)
            size, holder = self._ggml.ggml_nbytes(address), self._ggml.ggml_backend_buffer_name(tensor.buffer)
            kind, cells = names[tensor.type], tensor.ne[1] * tensor.ne[2]
            report = CacheTensorReport(
                name=name, type=kind, width=tensor.ne[0], cells=cells, bytes=size, buffer=holder.decode()
            )
            found.append(CacheTensor(report, address))
        return found

    def buffers(self) -> int:
        """Return the bytes of the backend buffers that hold these tensors, including padding."""
        holders = {Tensor.from_address(address).buffer for address in self._roots.values()}
        return sum(self._ggml.ggml_backend_buffer_get_size(holder) for holder in holders)

    def save_values(self, rows: int, path: Path) -> int:
        """Save the first rows of all tensors of an f16 cache as float32 of shape (blocks, 32); return the blocks."""
        parts = []
        for tensor in self.tensors():
            raw = ctypes.create_string_buffer(rows * tensor.report.width * 2)
            self._ggml.ggml_backend_tensor_get(tensor.address, raw, 0, len(raw))
            parts.append(np.frombuffer(raw.raw, dtype=np.float16).astype(np.float32).reshape(-1, 32))
        values = np.concatenate(parts)
        np.save(path, values)
        return len(values)
