"""`tqforge build --json` for the library alone, in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from tqforge.adapters.console import Output
from tqforge.commands import build
from tqforge.context import Context
from tqforge.domain.buildplan import Options
from tqforge.workspace import Workspace

if __name__ == "__main__":
    ctx = Context(workspace=Workspace(Path(sys.argv[1])), out=Output(json_mode=True))
    sys.exit(build.run(ctx, base="upstream", source=sys.argv[2], options=Options(targets=("llama",))))
