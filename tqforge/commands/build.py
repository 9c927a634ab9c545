"""`tqforge build`: base, series, compile, load, decode; or a word on why nothing had to be done."""

from __future__ import annotations

import time
from pathlib import Path

from tqforge.base import source as sources
from tqforge.base.models import fetch_model_file
from tqforge.base.pins import load_base, load_models
from tqforge.build import builder
from tqforge.build.builder import Built, ModelSource
from tqforge.build.cmake_plan import Options
from tqforge.context import Context
from tqforge.core.values import Checkout
from tqforge.errors import DownloadError
from tqforge.series import checkout


def run(ctx: Context, *, base: str | None, source: str, options: Options) -> int:
    """Build, and print what was built."""
    start = time.monotonic()
    with ctx.workspace.lock("tqforge build"):
        built, prepared = ensure(ctx, base=base, source=source, options=options)
    _show(ctx, built, prepared, time.monotonic() - start)
    return 0


def ensure(
    ctx: Context, *, base: str | None, source: str = "archive", options: Options | None = None
) -> tuple[Built, Checkout]:
    """The current build of a base. The caller holds the workspace lock."""
    options, pin = options or Options(), load_base(base)
    builder.preflight(options)
    prepared = checkout.prepare(ctx, pin, source=source)
    try:
        sources.ensure_bindings(ctx, pin)
    except DownloadError as error:
        ctx.out.warn(f"{error.what} Without the bindings of this base the library cannot be loaded now.")
    return builder.build(ctx, prepared, options, load_model(ctx)), prepared


def load_model(ctx: Context) -> ModelSource:
    """The embedded model of the load check, fetched when it is asked for."""

    def fetch() -> Path:
        default, pins = load_models()
        return fetch_model_file(ctx.workspace, pins[default], ctx.out)

    return fetch


def _show(ctx: Context, built: Built, prepared: Checkout, seconds: float) -> None:
    stamp, load = built.stamp, built.load
    if built.reasons:
        ctx.out.tell(f"Built in {seconds:.0f} s.")
    else:
        same = f"tree {stamp.tree[:12]}, options, compilers and files are those of the last build"
        ctx.out.tell(f"Nothing to do: {same} ({seconds:.1f} s).")
    if load.status == "deferred":
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
