"""`tqforge patch apply`: check out the base with the series; a patch that does not apply is resolved step by step."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters.git import Repository
from tqforge.base import source
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.core.values import Checkout
from tqforge.series import export, resolve, series
from tqforge.series.checkout import prepare
from tqforge.series.failures import ApplyError, broken_reason
from tqforge.series.lock import SeriesPaths


def run(
    ctx: Context,
    *,
    base_name: str | None = None,
    source: str = source.ARCHIVE,
    patches: Path | None = None,
    discard: bool = False,
    write_lock: bool = False,
) -> int:
    """Apply the series. Raises PatchError with the conflict set up in a worktree, and how to continue."""
    base = load_base(base_name)
    paths = SeriesPaths.of(base.name, patches)
    repository = Repository(ctx.workspace.checkout(base.name))
    with ctx.workspace.lock("tqforge patch apply"):
        try:
            ready = prepare(
                ctx.workspace, ctx.out, base, source=source, paths=paths, discard=discard, write_lock=write_lock
            )
        except ApplyError as error:
            raise resolve.start(repository, error) from None
        resolve.abort(repository)
    _show(ctx, ready)
    return 0


def continue_(ctx: Context, *, base_name: str | None = None, patches: Path | None = None, skip: bool = False) -> int:
    """Apply the rest after a conflict was resolved, then rewrite the patch files that changed."""
    base = load_base(base_name)
    paths = SeriesPaths.of(base.name, patches)
    repository = Repository(ctx.workspace.checkout(base.name))
    with ctx.workspace.lock("tqforge patch apply --continue"):
        before = series.load(paths.folder)
        resolve.continue_(repository, before, skip=skip)
        skipped = resolve.current(repository).skipped
        head = resolve.resolved_head(repository)
        changed = export.write(repository, base.tree, paths, head, keep_shifted=True)
        ready = prepare(ctx.workspace, ctx.out, base, paths=paths, write_lock=True)
        resolve.abort(repository)
    _warn_of_lost_lines(ctx, before, series.load(paths.folder))
    for name in skipped:
        ctx.out.say(f"  {name} was skipped and is no longer in the series")
    ctx.out.say(f"  rewritten: {', '.join(changed) or 'nothing'}")
    _show(ctx, ready)
    return 0


def _warn_of_lost_lines(ctx: Context, before: series.Series, after: series.Series) -> None:
    """Warn when a resolution removes more than the old patch did: it may have dropped upstream's lines."""
    old = {patch.name: patch for patch in before.patches}
    for patch in after.patches:
        if patch.name not in old or broken_reason(old[patch.name].data):
            continue
        if lost := resolve.removed_beyond(old[patch.name].text, patch.text):
            shown = "; ".join(repr(line.strip()) for line in lost[:3])
            ctx.out.warn(f"{patch.name} now removes {len(lost)} lines that it did not remove before: {shown}.")


def abort(ctx: Context, *, base_name: str | None = None) -> int:
    """Drop the conflict. The checkout and the series are as they were."""
    base = load_base(base_name)
    with ctx.workspace.lock("tqforge patch apply --abort"):
        there = resolve.abort(Repository(ctx.workspace.checkout(base.name)))
    ctx.out.say("  removed the conflict" if there else "  there was no conflict")
    ctx.out.document({"aborted": there})
    return 0


def _show(ctx: Context, ready: Checkout) -> None:
    lines = [f"{patch.tree[:12]}  {patch.name}" for patch in ready.patches]
    state = "unchanged" if ready.reused else "applied"
    ctx.out.show("\n".join([f"{ready.base.tree[:12]}  base {ready.base.name}", *lines, f"{state}: {ready.path}"]))
    ctx.out.document(
        {
            "base": ready.base.name,
            "checkout": str(ready.path),
            "base_commit": ready.base_commit,
            "head": ready.head,
            "tree": ready.tree,
            "series_sha256": ready.series_sha256,
            "reused": ready.reused,
            "patches": [
                {"name": p.name, "commit": p.commit, "tree": p.tree, "patch_id": p.patch_id} for p in ready.patches
            ],
        }
    )
