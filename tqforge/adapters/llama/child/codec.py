"""Call the C encoders and decoders of a ggml type in the loaded library."""

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
    """Return the exported encoders of a type: the reference, and the one that the CPU backend writes caches with."""
    return [symbol for symbol in (f"quantize_row_{name}_ref", f"quantize_row_{name}") if hasattr(native.ggml, symbol)]


def _call(native: Native, symbol: str, source: Any, target: Any, count: int) -> None:
    function = getattr(native.ggml, symbol, None)
    if function is None:
        raise LoadError(f"The library does not export {symbol}.", where=str(native.path))
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None
    function(source.ctypes.data, target.ctypes.data, count)


def encode(native: Native, name: str, symbol: str, values: Path, out: Path) -> None:
    """Quantize the float32 rows in the file `values` with the encoder `symbol`; the byte rows go to the file `out`."""
    source = np.ascontiguousarray(np.load(values), dtype=np.float32)
    size = native.ggml.ggml_row_size(native.type_id(name), source.shape[-1])
    target = np.zeros((*source.shape[:-1], size), dtype=np.uint8)
    _call(native, symbol, source, target, source.size)
    np.save(out, target)


def decode(native: Native, name: str, packed: Path, out: Path) -> None:
    """Dequantize the byte rows in the file `packed`; the float32 rows go to the file `out`."""
    np.save(out, values(native, name, np.load(packed)))


def values(native: Native, name: str, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return byte rows of a quantized type, f16 or f32 as float32 rows."""
    source = np.ascontiguousarray(packed, dtype=np.uint8)
    if name in _PLAIN:
        return source.view(_PLAIN[name]).astype(np.float32)
    info = native.types[name]
    width = source.shape[-1] // info.bytes * info.block
    target = np.zeros((*source.shape[:-1], width), dtype=np.float32)
    _call(native, f"dequantize_row_{name}", source, target, target.size)
    return target
