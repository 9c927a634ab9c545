"""`tqforge run`: a program of the patched build in the foreground, built first when it is not there yet."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tqforge.adapters import proc
from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.commands import env as env_command
from tqforge.context import Context
from tqforge.errors import UsageError


def run(ctx: Context, program: str, arguments: list[str], *, base: str | None, metal: bool | None) -> int:
    """Run it with the user's own terminal; the exit status is the program's."""
    built = builder.find(ctx, load_base(base).name, metal=metal)
    path = _locate(ctx, built, program)
    environment = {
        **env_command.variables(built),
        "PATH": f"{built.bin}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    return proc.replace([path, *arguments], environment)


def _locate(ctx: Context, built: Built, program: str) -> Path:
    """In the build; among what the build can make; on PATH."""
    path = built.bin / program
    if "/" not in program and path.is_file():
        return path
    if program in builder.known_programs(built):
        with ctx.workspace.lock(f"tqforge run {program}"):
            builder.ensure_targets(ctx, built, (program,))
        return path
    if found := shutil.which(program):
        return Path(found)
    near = [name for name in sorted(builder.known_programs(built)) if re.match(r"llama-", name)]
    raise UsageError(
        f"There is no program '{program}' in the build or on PATH.", remedy=f"Choose one of: {', '.join(near)}."
    )
