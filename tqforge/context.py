"""What every command receives: the workspace and the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from tqforge.adapters.console import Output
from tqforge.workspace import Workspace


@dataclass(frozen=True)
class Context:
    """Passed downward; nothing reaches for globals."""

    workspace: Workspace
    out: Output
    argv: tuple[str, ...] = ()
