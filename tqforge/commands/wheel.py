"""`tqforge wheel`: make a llama-cpp-python wheel with the patched libraries."""

from __future__ import annotations

import shlex
from pathlib import Path

from tqforge.base import models
from tqforge.base.pins import load_base
from tqforge.build import builder, wheel
from tqforge.build.cmake_plan import Options
from tqforge.context import Context


def run(ctx: Context, *, base: str | None, options: Options, out: Path | None) -> int:
    """Build if needed, make the wheel and load it."""
    with ctx.workspace.lock("tqforge wheel"):
        pin = load_base(base)
        built, _ = builder.ensure(ctx.workspace, ctx.out, pin, options=options)
        made = wheel.make(
            ctx.workspace,
            ctx.out,
            pin,
            built,
            out=out or ctx.workspace.root / "wheels",
            model=lambda: models.fetch_default(ctx.workspace, ctx.out),
        )
    if made.load.status == "skipped":
        ctx.out.warn(made.load.reason)
    if built.stamp.native:
        ctx.out.warn("The wheel is optimized for this CPU. For other machines, use `tqforge wheel --portable`.")
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
