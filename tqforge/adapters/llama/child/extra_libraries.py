"""Load the Metal emulator, a backend that is not linked into the library.

GGML_BACKEND_PATH has no effect here: libllama reads it only while no backend is registered, and the CPU is linked in.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from tqforge.adapters.llama.child.native import Native
from tqforge.core import emulator
from tqforge.errors import LoadError


def load(native: Native, library: Path, device: str) -> None:
    """Register the backend in the file `library`. Raises LoadError if ggml refuses it or it lacks `device`."""
    if not native.ggml.ggml_backend_load(str(library).encode()):
        raise LoadError(f"ggml could not load the backend: {native.log.errors()}", where=str(library))
    if not native.ggml.ggml_backend_dev_by_name(device.encode()):
        raise LoadError(f"The backend has no device {device}.", where=str(library))


def write_emulator_report(library: Path) -> None:
    """Let the emulator whose backend is `library` write its report. Raises LoadError if its runtime cannot."""
    try:
        ctypes.CDLL(str(library.with_name(emulator.RUNTIME))).metal_emulator_write_report()
    except (OSError, AttributeError) as error:
        raise LoadError(f"The Metal emulator cannot write a report: {error}", where=str(library)) from error
