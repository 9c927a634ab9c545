"""A backend that is not linked into the library: the Metal emulator, loaded into the child before any model.

GGML_BACKEND_PATH does nothing here: libllama looks at it only while no backend is registered, and the CPU is linked in.
"""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

from tqforge.adapters.llama.child.native import Native
from tqforge.core import emulator
from tqforge.errors import LoadError


def load(native: Native, library: Path, device: str) -> None:
    """Register the backend. Raises LoadError when it is refused, or has no such device."""
    if not native.ggml.ggml_backend_load(str(library).encode()):
        raise LoadError(f"ggml does not load the backend: {native.log.errors()}", where=str(library))
    if not native.ggml.ggml_backend_dev_by_name(device.encode()):
        raise LoadError(f"The backend has no device {device}.", where=str(library))


def emulator_report(library: Path) -> dict[str, Any]:
    """The report of the Metal emulator in this process. Raises LoadError when it writes none."""
    path = Path(os.environ.get(emulator.REPORT, ""))
    try:
        ctypes.CDLL(str(library.with_name(emulator.RUNTIME))).metal_emulator_write_report()
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, AttributeError, ValueError) as error:
        raise LoadError(f"The Metal emulator writes no report: {error}", where=str(library)) from error
    return report
