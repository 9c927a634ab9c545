"""`tqforge build`: build, and print what was built or reused."""

from __future__ import annotations

import time

from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.build.cmake_plan import Options
from tqforge.context import Context
from tqforge.core.values import Checkout


def run(ctx: Context, *, base: str | None, source: str, options: Options) -> int:
    """Build if needed, and print the result."""
    start = time.monotonic()
    with ctx.workspace.lock("tqforge build"):
        built, prepared = builder.ensure(ctx.workspace, ctx.out, load_base(base), origin=source, options=options)
    _show(ctx, built, prepared, time.monotonic() - start)
    return 0


def _show(ctx: Context, built: Built, prepared: Checkout, seconds: float) -> None:
    stamp, load = built.stamp, built.load
    if built.reasons:
        ctx.out.tell(f"Built in {seconds:.0f} s.")
    else:
        same = f"tree {stamp.tree[:12]}, options, compilers and files are unchanged since the last build"
        ctx.out.tell(f"Nothing to do: {same} ({seconds:.1f} s).")
    if load.status == "skipped":
        ctx.out.warn(load.reason)
    else:
        shown = f"{load.symbols} functions and {load.fields} default parameters match the bindings"
        ctx.out.tell(f"Load check passed: {load.tokens} tokens through a {load.pair} cache; {shown}.")
    rows = [
        ("version", stamp.version),
        ("tree", stamp.tree),
        ("preset", f"{stamp.preset} ({'native' if stamp.native else 'portable'})"),
        ("folder", str(built.bin)),
    ]
    ctx.out.lines(*(f"{name:8} {value}" for name, value in rows))
    ctx.out.document(
        {
            "base": stamp.base,
            "reused": not built.reasons,
            "reasons": list(built.reasons),
            "tree": stamp.tree,
            "patches": [patch.name for patch in prepared.patches],
            "version": stamp.version,
            "preset": stamp.preset,
            "native": stamp.native,
            "options": list(stamp.arguments),
            "compilers": stamp.compilers,
            "stamp": stamp.id,
            "bin": str(built.bin),
            "targets": list(stamp.targets),
            "load": load.model_dump(mode="json"),
            "seconds": round(seconds, 2),
        }
    )
