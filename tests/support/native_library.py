"""What a test of native code loads."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Native:
    """A built library, the bindings that fit it, and a model."""

    library: Path
    bindings: Path
    model: Path


def heed_interrupts() -> None:
    """For `preexec_fn`: a test run in the background of a shell ignores SIGINT, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
