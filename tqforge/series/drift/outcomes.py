"""The result of a patch on another version of llama.cpp."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DriftOutcome(StrEnum):
    """Whether and how a patch applies."""

    CLEAN = "clean"
    MOVED = "moved"
    MERGED = "merged"
    ALREADY_UPSTREAM = "already upstream"
    CONFLICT = "conflict"
    TARGET_DELETED = "target deleted"
    BROKEN = "broken"
    LOST_LINES = "lost upstream lines"


BREAKING = {DriftOutcome.CONFLICT, DriftOutcome.TARGET_DELETED, DriftOutcome.BROKEN, DriftOutcome.LOST_LINES}


@dataclass(frozen=True, kw_only=True)
class DriftResult:
    """One patch on one snapshot."""

    patch: str
    outcome: DriftOutcome
    file: str = ""
    hunk: int = 0
    hunks: int = 0
    detail: str = ""
    needs: tuple[str, ...] = ()  # earlier patches that failed and that this one depends on

    @property
    def breaking(self) -> bool:
        return self.outcome in BREAKING

    def place(self) -> str:
        """Return file and hunk, for a table."""
        return f"{self.file}, hunk {self.hunk} of {self.hunks}" if self.hunk else self.file
