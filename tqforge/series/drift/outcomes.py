"""What can become of a patch on another state of llama.cpp."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What becomes of one patch."""

    CLEAN = "clean"
    MOVED = "moved"
    MERGED = "merged"
    ALREADY_UPSTREAM = "already upstream"
    CONFLICT = "conflict"
    TARGET_DELETED = "target deleted"
    BROKEN = "broken"
    LOST_LINES = "lost upstream lines"


BREAKING = {Outcome.CONFLICT, Outcome.TARGET_DELETED, Outcome.BROKEN, Outcome.LOST_LINES}


@dataclass(frozen=True, kw_only=True)
class Result:
    """One patch on one snapshot."""

    patch: str
    outcome: Outcome
    file: str = ""
    hunk: int = 0
    hunks: int = 0
    detail: str = ""
    needs: tuple[str, ...] = ()  # earlier patches that failed and without which this one cannot apply

    @property
    def breaking(self) -> bool:
        return self.outcome in BREAKING

    def place(self) -> str:
        """File and hunk, for a table."""
        return f"{self.file}, hunk {self.hunk} of {self.hunks}" if self.hunk else self.file
