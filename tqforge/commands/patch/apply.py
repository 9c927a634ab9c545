"""`tqforge patch apply`: the series as commits in the checkout; a patch that does not fit is parked and resolved."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters.git import Repository
from tqforge.base import source
from tqforge.base.pins import load_base
from tqforge.commands.patch import export
from tqforge.context import Context
from tqforge.core.values import Base, Prepared
from tqforge.errors import PatchError
from tqforge.series import resolve, series
from tqforge.series.checkout import prepare
from tqforge.series.failures import Failure
from tqforge.series.lock import Shelf


def run(
    ctx: Context,
    *,
    base_name: str | None = None,
    source: str = source.ARCHIVE,
    patches: Path | None = None,
    discard: bool = False,
    write_lock: bool = False,
) -> int:
    """Apply the series. Raises PatchError with the patch parked, and the three commands to go on."""
    base = load_base(base_name)
    shelf = Shelf.of(base.name, patches)
    with ctx.workspace.lock("tqforge patch apply"):
        try:
            ready = prepare(
                ctx.workspace, ctx.out, base, source=source, shelf=shelf, discard=discard, write_lock=write_lock
            )
        except PatchError:
            raise _parked(ctx, base, source, shelf) from None
        resolve.abort(Repository(ready.checkout))
    _show(ctx, ready)
    return 0


def _parked(ctx: Context, base: Base, origin: str, shelf: Shelf) -> PatchError:
    repository, base_commit = source.ensure_base(ctx.workspace, ctx.out, base, origin)
    failure = resolve.start(repository, base_commit, series.load(shelf.folder))
    assert failure is not None  # the same series failed a moment ago
    return resolve.instructions(repository, failure, str(shelf.folder / failure.patch))


def go_on(ctx: Context, *, base_name: str | None = None, patches: Path | None = None, skip: bool = False) -> int:
    """After a person resolved the parked patch: apply the rest, then rewrite the patch files that changed."""
    base = load_base(base_name)
    shelf = Shelf.of(base.name, patches)
    repository = Repository(ctx.workspace.checkout(base.name))
    with ctx.workspace.lock("tqforge patch apply --continue"):
        failure: Failure | None = resolve.go_on(repository, series.load(shelf.folder), skip=skip)
        if failure:
            raise resolve.instructions(repository, failure, str(shelf.folder / failure.patch))
        head, parked = resolve.finish(repository)
        before = series.load(shelf.folder)
        changed = export.write(repository, base, shelf, head, moved=False)
        ready = prepare(ctx.workspace, ctx.out, base, shelf=shelf, write_lock=True)
        resolve.abort(repository)
    _warn_of_lost_lines(ctx, before, series.load(shelf.folder))
    for name in parked.skipped:
        ctx.out.say(f"  {name} was skipped and is no longer in the series")
    ctx.out.say(f"  rewritten: {', '.join(changed) or 'nothing'}")
    _show(ctx, ready)
    return 0


def _warn_of_lost_lines(ctx: Context, before: series.Series, after: series.Series) -> None:
    """A resolution that removes more than the recorded patch did may have dropped upstream's lines."""
    old = {patch.name: patch for patch in before.patches}
    for patch in after.patches:
        if patch.name in old and (lost := resolve.removed_beyond(old[patch.name].text, patch.text)):
            shown = "; ".join(repr(line.strip()) for line in lost[:3])
            ctx.out.warn(
                f"{patch.name} now removes {len(lost)} lines that it did not remove before: {shown}. Look at them."
            )


def abort(ctx: Context, *, base_name: str | None = None) -> int:
    """Throw the parked work away. The checkout and the series are as they were."""
    base = load_base(base_name)
    with ctx.workspace.lock("tqforge patch apply --abort"):
        there = resolve.abort(Repository(ctx.workspace.checkout(base.name)))
    ctx.out.say("  the parked patch was thrown away" if there else "  nothing was parked")
    ctx.out.document({"aborted": there})
    return 0


def _show(ctx: Context, ready: Prepared) -> None:
    lines = [f"{patch.tree[:12]}  {patch.name}" for patch in ready.patches]
    state = "unchanged" if ready.reused else "applied"
    ctx.out.show("\n".join([f"{ready.base.tree[:12]}  base {ready.base.name}", *lines, f"{state}: {ready.checkout}"]))
    ctx.out.document(
        {
            "base": ready.base.name,
            "checkout": str(ready.checkout),
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
