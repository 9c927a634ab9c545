"""The context of one invocation."""

from __future__ import annotations

from dataclasses import dataclass

from tqforge.adapters.console import Output
from tqforge.workspace import Workspace


@dataclass(frozen=True)
class Context:
    """Workspace, terminal and command line of one invocation."""

    workspace: Workspace
    out: Output
    argv: tuple[str, ...] = ()
