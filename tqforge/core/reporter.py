"""What code below the commands needs to report progress, without knowing a terminal."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class Meter(Protocol):
    """Progress of one long step."""

    def update(self, done: float, note: str = "") -> None:
        """Set the absolute amount done, and a note on what is being done."""


class Reporter(Protocol):
    """Receives what happens while a command runs. All texts are plain."""

    def tell(self, text: str) -> None:
        """Report a detail."""

    def step(self, text: str) -> None:
        """Report the start of a step."""

    def warn(self, text: str) -> None:
        """Report a problem that does not stop the command."""

    def meter(self, title: str, total: float | None = None) -> AbstractContextManager[Meter]:
        """Open the progress of a long step; `total` is what `Meter.update` counts up to, if known."""
