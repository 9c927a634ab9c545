"""The library alone: where its tests build it, and `tqforge build --json` for it in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tqforge.adapters.console import Output
from tqforge.build.cmake_plan import Options
from tqforge.commands import build
from tqforge.context import Context
from tqforge.workspace import Workspace


def context(workspace: Path, *, json: bool = False) -> Context:
    return Context(workspace=Workspace(workspace), out=Output(json_mode=json))


def source() -> str:
    """`TQFORGE_TEST_SOURCE` may name an archive that is already there."""
    return os.environ.get("TQFORGE_TEST_SOURCE", "archive")


if __name__ == "__main__":
    ctx = context(Path(sys.argv[1]), json=True)
    sys.exit(build.run(ctx, base="upstream", source=sys.argv[2], options=Options(targets=("llama",))))
