"""`tqforge run`: run a program of the patched build in the foreground, and build it first if needed."""

from __future__ import annotations

import shutil
from pathlib import Path

from tqforge.adapters import proc
from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.context import Context
from tqforge.errors import UsageError


def run(ctx: Context, program: str, arguments: list[str], *, base: str | None, metal: bool | None) -> int:
    """Run the program with the user's terminal and return its exit status."""
    built = builder.find(ctx.workspace, load_base(base).name, metal=metal)
    path = _locate(ctx, built, program)
    return proc.replace([path, *arguments], {**built.variables, "PATH": built.search_path})


def _locate(ctx: Context, built: Built, program: str) -> Path:
    """Look in the build, then in its buildable targets, then on PATH."""
    path = built.bin / program
    if "/" not in program and path.is_file():
        return path
    known = built.known_programs()
    if program in known:
        with ctx.workspace.lock(f"tqforge run {program}"):
            builder.ensure_targets(ctx.workspace, ctx.out, built, (program,))
        return path
    if found := shutil.which(program):
        return Path(found)
    names = ", ".join(name for name in sorted(known) if name.startswith("llama-"))
    raise UsageError(f"There is no program '{program}' in the build or on PATH.", remedy=f"Choose one of: {names}.")
