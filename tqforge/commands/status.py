"""`tqforge status`: show base, series, checkout and builds."""

from __future__ import annotations

from typing import Any

from tqforge.base.pins import load_base
from tqforge.build import status
from tqforge.build.status import BuildState, CheckoutState, SeriesState
from tqforge.context import Context
from tqforge.core.values import Base

_SHOWN_CHANGES = 5


def run(ctx: Context, base_name: str | None = None) -> int:
    """Print the state of the workspace, and the cache types that each build accepts."""
    base = load_base(base_name)
    series = status.series(base)
    checkout = status.checkout(ctx.workspace, base)
    builds = status.builds(ctx.workspace, base, checkout.tree)
    rows = [
        ("base", f"{base.name}: {base.title}, commit {base.commit}"),
        ("", f"tree {base.tree}"),
        ("series", _series_words(series)),
        ("checkout", _checkout_words(checkout, series)),
        *(("", f"changed: {line}") for line in checkout.changes[:_SHOWN_CHANGES]),
        *(row for build in builds for row in _build_rows(build)),
        *([] if builds else [("builds", "none yet: `tqforge build`")]),
        ("workspace", str(ctx.workspace.root)),
    ]
    ctx.out.lines(*(f"{name:10}{text}" for name, text in rows))
    ctx.out.document(_document(ctx, base, series, checkout, builds))
    return 0


def _series_words(series: SeriesState) -> str:
    given = f"tree {series.tree}" if series.tree else "not in the lock"
    return f"{len(series.patches)} patches, {given}{f' ({series.problem})' if series.problem else ''}"


def _checkout_words(checkout: CheckoutState, series: SeriesState) -> str:
    if not checkout.exists:
        return f"none yet at {checkout.path}"
    if checkout.interrupted:
        return f"{checkout.path}: an apply was interrupted; `tqforge build` repairs it"
    as_locked = {"": "", checkout.tree: ", as locked"}.get(series.tree, ", not the locked tree")
    dirty = f", {len(checkout.changes)} uncommitted changes" if checkout.changes else ", clean"
    return f"tree {checkout.tree} at {checkout.path}, {checkout.applied} patches{as_locked}{dirty}"


def _build_rows(build: BuildState) -> list[tuple[str, str]]:
    stamp = build.built.stamp
    fresh = "of this checkout" if build.current else f"out of date (tree {stamp.tree[:12]}): run `tqforge build`"
    kind = "native" if stamp.native else "portable"
    load = build.built.load
    checked = f"load check passed ({load.tokens} tokens, {load.pair})" if load.status == "passed" else load.reason
    rows = [("build", f"{stamp.preset}, {kind}, {stamp.version}, {fresh}"), ("", checked)]
    if build.problem:
        return [*rows, ("", f"cannot be run: {build.problem}")]
    has = "has tq3_0" if build.knows else "has no tq3_0"
    return [*rows, ("", f"accepts {', '.join(build.accepts) or 'no cache types'}; the library {has}")]


def _document(
    ctx: Context, base: Base, series: SeriesState, checkout: CheckoutState, builds: list[BuildState]
) -> dict[str, Any]:
    return {
        "base": {"name": base.name, "title": base.title, "commit": base.commit, "tree": base.tree},
        "series": {
            "patches": list(series.patches),
            "sha256": series.sha256,
            "tree": series.tree,
            "problem": series.problem,
        },
        "checkout": {
            "path": str(checkout.path),
            "exists": checkout.exists,
            "tree": checkout.tree,
            "interrupted": checkout.interrupted,
            "changes": list(checkout.changes),
        },
        "builds": [
            {
                "preset": build.built.stamp.preset,
                "version": build.built.stamp.version,
                "tree": build.built.stamp.tree,
                "current": build.current,
                "native": build.built.stamp.native,
                "load": build.built.load.model_dump(mode="json", exclude={"types"}),
                "accepts": list(build.accepts),
                "tq3_0": build.knows,
                "problem": build.problem,
                "bin": str(build.built.bin),
            }
            for build in builds
        ],
        "workspace": str(ctx.workspace.root),
    }
