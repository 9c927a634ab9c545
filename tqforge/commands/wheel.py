"""`tqforge wheel`: a llama-cpp-python wheel with the patched library inside."""

from __future__ import annotations

import shlex
from pathlib import Path

from tqforge.build import wheel
from tqforge.build.cmake_plan import Options
from tqforge.commands import build as build_command
from tqforge.context import Context


def run(ctx: Context, *, base: str | None, options: Options, out: Path | None) -> int:
    """Build what is not built yet, pack it, load it out of the wheel."""
    with ctx.workspace.lock("tqforge wheel"):
        built, prepared = build_command.ensure(ctx, base=base, options=options)
        ctx.out.step("Packing the library with its bindings, and loading it out of the wheel")
        made = wheel.make(
            ctx, prepared.base, built, out or ctx.workspace.root / "wheels", build_command.load_model(ctx)
        )
    if made.load.status == "deferred":
        ctx.out.warn(made.load.reason)
    if built.stamp.native:
        ctx.out.warn("The wheel uses this CPU's own instructions. For other machines: `tqforge wheel --portable`.")
    ctx.out.lines(str(made.path), f"pip install --force-reinstall {shlex.quote(str(made.path))}")
    ctx.out.document(
        {
            "wheel": str(made.path),
            "version": made.version,
            "tree": built.stamp.tree,
            "native": built.stamp.native,
            "load": made.load.model_dump(mode="json", exclude={"types"}),
        }
    )
    return 0
