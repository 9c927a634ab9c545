"""The C codec of a type, called through the loaded library."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.child.native import Native
from tqforge.errors import LoadError

_PLAIN: dict[str, type[np.floating[Any]]] = {"f16": np.float16, "f32": np.float32}


def encoders(native: Native, name: str) -> list[str]:
    """The encoders the library exports for a type: the reference, and the one the CPU backend writes caches with."""
    return [symbol for symbol in (f"quantize_row_{name}_ref", f"quantize_row_{name}") if hasattr(native.ggml, symbol)]


def _call(native: Native, symbol: str, source: Any, target: Any, count: int) -> None:
    function = getattr(native.ggml, symbol, None)
    if function is None:
        raise LoadError(f"The library does not export {symbol}.", where=str(native.path))
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None
    function(source.ctypes.data, target.ctypes.data, count)


def encode(native: Native, name: str, symbol: str, values: Path, out: Path) -> None:
    """Quantize the float32 array in `values` with one encoder; the bytes go to `out`, one row per row."""
    source = np.ascontiguousarray(np.load(values), dtype=np.float32)
    size = native.ggml.ggml_row_size(native.type_id(name), source.shape[-1])
    target = np.zeros((*source.shape[:-1], size), dtype=np.uint8)
    _call(native, symbol, source, target, source.size)
    np.save(out, target)


def decode(native: Native, name: str, packed: Path, out: Path) -> None:
    """Dequantize the byte rows in `packed` into float32 rows in `out`."""
    np.save(out, values(native, name, np.load(packed)))


def values(native: Native, name: str, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The float32 rows of byte rows of a quantized type, of f16 or f32."""
    source = np.ascontiguousarray(packed, dtype=np.uint8)
    if name in _PLAIN:
        return source.view(_PLAIN[name]).astype(np.float32)
    info = native.types[name]
    width = source.shape[-1] // info.bytes * info.block
    target = np.zeros((*source.shape[:-1], width), dtype=np.float32)
    _call(native, f"dequantize_row_{name}", source, target, target.size)
    return target
