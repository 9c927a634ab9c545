"""What a test of native code loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Native:
    """A built library, the bindings that fit it, and a model."""

    library: Path
    bindings: Path
    model: Path
