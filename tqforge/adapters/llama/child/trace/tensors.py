"""The cache's own tensors, seen through llama.cpp's evaluation callback: their exact bytes, and what they hold.

The log prints sizes in MiB with two decimals. The graph that writes a token names the tensors themselves
(`cache_k_l0`), and ggml answers for each how many bytes it takes and which buffer holds it.
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
    """The head of `struct ggml_tensor`; its layout is checked against `ggml_get_name` before use."""

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
    """One K or V tensor of the cache, and its address in this process."""

    report: CacheTensorReport
    address: int

    @property
    def name(self) -> str:
        return self.report.name


class CacheProbe:
    """Collects the cache tensors that a graph touches. Pass `callback` to the context, decode one token, read."""

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
        """In the order of their names. Raises LoadError when the library's tensor layout is another one."""
        if self._drift:
            raise LoadError("struct ggml_tensor has another layout than expected; the cache cannot be measured.")
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
        """Bytes of the backend buffers that hold these tensors, padding included."""
        holders = {Tensor.from_address(address).buffer for address in self._roots.values()}
        return sum(self._ggml.ggml_backend_buffer_get_size(holder) for holder in holders)

    def save_values(self, rows: int, path: Path) -> int:
        """The first rows of every tensor of an f16 cache as one float32 array of blocks of 32; returns their number."""
        parts = []
        for tensor in self.tensors():
            raw = ctypes.create_string_buffer(rows * tensor.report.width * 2)
            self._ggml.ggml_backend_tensor_get(tensor.address, raw, 0, len(raw))
            parts.append(np.frombuffer(raw.raw, dtype=np.float16).astype(np.float32).reshape(-1, 32))
        values = np.concatenate(parts)
        np.save(path, values)
        return len(values)
