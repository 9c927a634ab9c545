"""Load libllama and its Python bindings; look up types, devices and log lines."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqforge.adapters.llama.api.model import DeviceInfo, TypeInfo
from tqforge.adapters.llama.child import symbols
from tqforge.errors import CacheTypeError, LoadError

_HIGHEST_ID = 255
_LOG_LINES = 4000
_GPU_TYPES = (1, 2)  # GGML_BACKEND_DEVICE_TYPE_GPU, _IGPU
_DEBUG = 1  # GGML_LOG_LEVEL_DEBUG
_ROTATION = re.compile(r"attn_rot_([kv]) = (\d+)")


class Log:
    """Log callback: copies the library's log to standard error and keeps its last lines."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_LOG_LINES)
        self.watch: Callable[[str], bool] | None = None  # returns True for a line that need not be kept
        self._rest = ""

    def __call__(self, level: int, text: bytes, _user: Any) -> None:
        decoded = text.decode("utf-8", "replace")
        if level != _DEBUG:
            sys.stderr.write(decoded)
            sys.stderr.flush()
        *whole, self._rest = (self._rest + decoded).split("\n")
        self.lines.extend(line for line in whole if not (self.watch and self.watch(line)))

    def errors(self) -> str:
        """Return up to three of the last lines that look like the reason for a failure."""
        telling = [line for line in self.lines if re.search(r"error|fail|unsupported|requires|invalid", line, re.I)]
        return " | ".join(line.strip() for line in telling[-3:])

    def rotation(self) -> dict[str, bool]:
        """Return per side (`k`, `v`) whether llama.cpp rotates it in the last cache it created."""
        return {m[1]: m[2] != "0" for line in self.lines if (m := _ROTATION.search(line))}


class Native:
    """A loaded library with its bindings. Raises LoadError if they do not match."""

    def __init__(self, library: Path, bindings: Path) -> None:
        self.path = symbols.library_file(library)
        handle = symbols.open_library(self.path)
        self.declared = symbols.check_symbols(handle, symbols.declared_symbols(bindings), self.path)
        os.environ["LLAMA_CPP_LIB_PATH"] = str(library)
        if str(bindings) not in sys.path:
            sys.path.insert(0, str(bindings))
        self.api: Any = _import_bindings(bindings)
        self.version: str = importlib.import_module("llama_cpp").__version__
        self.fields = symbols.check_context_defaults(self.api.llama_context_default_params())
        self.log = Log()
        self._callback = self.api.llama_log_callback(self.log)
        self.api.llama_log_set(self._callback, ctypes.c_void_p(0))
        self.api.llama_backend_init()
        self.ggml = _declare(handle)
        self.types = {info.name: info for info in self._read_types()}

    def type_id(self, name: str) -> int:
        """Return the id of a type. Raises CacheTypeError if the library does not have it."""
        info = self.types.get(name)
        if info is None:
            known = ", ".join(sorted(self.types))
            raise CacheTypeError(
                f"The loaded library has no type '{name}'.",
                where=str(self.path),
                remedy=f"Build the patched library with `tqforge build`, or choose one of: {known}.",
            )
        return info.id

    def devices(self) -> list[DeviceInfo]:
        """Return the backend devices."""
        found = []
        for index in range(self.ggml.ggml_backend_dev_count()):
            device, free, total = self.ggml.ggml_backend_dev_get(index), ctypes.c_size_t(), ctypes.c_size_t()
            self.ggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
            gpu = self.ggml.ggml_backend_dev_type(device) in _GPU_TYPES
            name = self.ggml.ggml_backend_dev_name(device).decode("utf-8", "replace")
            found.append(DeviceInfo(name=name, gpu=gpu, free=free.value, total=total.value))
        return found

    def _read_types(self) -> Iterator[TypeInfo]:
        for number in range(self._type_count()):
            raw = self.ggml.ggml_type_name(number)
            size = self.ggml.ggml_type_size(number)
            if raw and size:
                name = raw.decode("ascii", "replace")
                quantized = self.ggml.ggml_is_quantized(number)
                block = self.ggml.ggml_blck_size(number)
                yield TypeInfo(name=name, id=number, block=block, bytes=size, quantized=bool(quantized))

    def _type_count(self) -> int:
        """Return GGML_TYPE_COUNT: the highest id that `ggml_validate_row_data` accepts, plus one.

        No function returns it, and `ggml_type_name` must not be called with an id beyond it.
        """
        with _silenced():
            for number in range(_HIGHEST_ID, -1, -1):
                if self.ggml.ggml_validate_row_data(number, None, 0):
                    return number + 1
        raise LoadError("The library has no types.", where=str(self.path))


def _import_bindings(bindings: Path) -> Any:
    try:
        module = importlib.import_module("llama_cpp.llama_cpp")
    except (AttributeError, ImportError, OSError, RuntimeError) as error:
        raise LoadError(f"The Python bindings cannot be imported: {error}", where=str(bindings)) from error
    if not Path(str(module.__file__)).is_relative_to(bindings):
        raise LoadError(
            "Python imported a different llama_cpp than the bindings of this base.",
            where=str(module.__file__),
            remedy="Install tqforge in a separate virtual environment.",
        )
    return module


def _declare(handle: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the ggml functions used here; the dynamic loader finds them through libllama."""
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    table: dict[str, tuple[list[Any], Any]] = {
        "ggml_type_name": ([ctypes.c_int], ctypes.c_char_p),
        "ggml_type_size": ([ctypes.c_int], size),
        "ggml_blck_size": ([ctypes.c_int], ctypes.c_int64),
        "ggml_row_size": ([ctypes.c_int, ctypes.c_int64], size),
        "ggml_is_quantized": ([ctypes.c_int], ctypes.c_bool),
        "ggml_validate_row_data": ([ctypes.c_int, pointer, size], ctypes.c_bool),
        "ggml_get_name": ([pointer], pointer),
        "ggml_nbytes": ([pointer], size),
        "ggml_op_name": ([ctypes.c_int], ctypes.c_char_p),
        "ggml_backend_tensor_get": ([pointer, pointer, size, size], None),
        "ggml_backend_tensor_set": ([pointer, pointer, size, size], None),
        "ggml_backend_buffer_get_size": ([pointer], size),
        "ggml_backend_buffer_name": ([pointer], ctypes.c_char_p),
        "ggml_backend_dev_count": ([], size),
        "ggml_backend_dev_get": ([size], pointer),
        "ggml_backend_dev_name": ([pointer], ctypes.c_char_p),
        "ggml_backend_dev_type": ([pointer], ctypes.c_int),
        "ggml_backend_dev_memory": ([pointer, pointer, pointer], None),
        "ggml_backend_load": ([ctypes.c_char_p], pointer),
        "ggml_backend_dev_by_name": ([ctypes.c_char_p], pointer),
    }
    for name, (arguments, result) in table.items():
        function = getattr(handle, name, None)
        if function is None:
            raise LoadError(f"The library does not export {name}.", where=handle._name)
        function.argtypes, function.restype = arguments, result
    return handle


@contextmanager
def _silenced() -> Iterator[None]:
    """Discard what native code writes to standard error."""
    sys.stderr.flush()
    kept = os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(sink)
