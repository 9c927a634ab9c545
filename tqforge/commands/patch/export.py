"""`tqforge patch export`: the commits of the checkout as patch files, series and lock; `--check` only compares."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters.git import Repository
from tqforge.base import source
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.core.values import Base
from tqforge.errors import CheckoutError, ConfigError, ExitCode
from tqforge.series import apply, export
from tqforge.series import series as series_files
from tqforge.series.checkout import prepare
from tqforge.series.export import Difference
from tqforge.series.lock import Shelf

_REMEDY = {
    Difference.MOVED: "only positions and index ids differ: run `tqforge patch export`, in a commit of its own",
    Difference.MESSAGE: "the message differs from the canonical form: run `tqforge patch export`",
    Difference.CHANGED: "the file was edited by hand: change the commit instead, then run `tqforge patch export`",
}


def run(
    ctx: Context,
    *,
    base_name: str | None = None,
    patches: Path | None = None,
    repository: Path | None = None,
    revision: str = "HEAD",
    moved: bool = True,
) -> int:
    """Write the commits of the checkout (or of another repository) as the series. `moved` false leaves files alone
    whose change is the same (`tqforge patch refresh`)."""
    base = load_base(base_name)
    shelf = Shelf.of(base.name, patches)
    with ctx.workspace.lock("tqforge patch export"):
        theirs = Repository(repository.absolute() if repository else ctx.workspace.checkout(base.name))
        _require_clean(theirs, revision)
        changed = write(theirs, base, shelf, theirs.resolve(revision), moved=moved)
        ready = prepare(ctx.workspace, ctx.out, base, shelf=shelf, discard=repository is None, write_lock=True)
    for name in changed:
        ctx.out.say(f"  wrote {name}")
    ctx.out.show(f"{len(ready.patches)} patches, {len(changed)} files written, tree {ready.tree}")
    ctx.out.document({"base": base.name, "tree": ready.tree, "written": changed})
    return 0


def _require_clean(repository: Repository, revision: str) -> None:
    if not repository.exists() or not repository.resolve(revision):
        raise CheckoutError(
            f"There is no commit '{revision}'.", where=str(repository.path), remedy="Run `tqforge patch apply` first."
        )
    if revision != "HEAD":
        return  # a commit that was named is taken as it is
    if changes := repository.changes():
        raise CheckoutError(
            f"The checkout has changes that are in no commit: {', '.join(line[3:] for line in changes[:8])}.",
            where=str(repository.path),
            remedy="Commit them: `tqforge patch new NAME`, or `git commit --amend` for the last patch.",
        )


def write(theirs: Repository, base: Base, shelf: Shelf, head: str, *, moved: bool) -> list[str]:
    """Write the patch files of a range of commits; the names that were written or removed."""
    first = export.base_of(theirs, head, base.tree)
    exported = export.export_commits(theirs, first, head)
    if not exported:
        raise ConfigError("There is no commit to export.", where=str(theirs.path), remedy="Commit your change first.")
    _writable(shelf.folder)
    series = series_files.load(shelf.folder)
    differences = export.compare(theirs, series, exported)
    return export.write_series(shelf.folder, exported, differences, moved=moved)


def _writable(folder: Path) -> None:
    if folder.parent.parent.name == "_data":
        raise ConfigError(
            "The series of an installed tqforge is not written to.",
            where=str(folder),
            remedy="Work in a checkout of tqforge, or name a folder of your own with --patches.",
        )


def check(ctx: Context, *, base_name: str | None = None, patches: Path | None = None) -> int:
    """Whether the files on disk are exactly what their commits give, and the lock belongs to them."""
    base = load_base(base_name)
    shelf = Shelf.of(base.name, patches)
    series = series_files.load(shelf.folder)
    if not series.patches:
        raise ConfigError("There is no patch to check.", where=str(shelf.folder))
    with ctx.workspace.lock("tqforge patch export --check"):
        repository, base_commit = source.ensure_base(ctx.workspace, ctx.out, base, source.ARCHIVE)
        with apply.aside(repository, "check", base_commit) as work:
            apply.commit_series(repository, work, series)
            exported = export.export_commits(work, base_commit, work.resolve("HEAD"))
        differences = export.compare(repository, series, exported)
        ready = prepare(ctx.workspace, ctx.out, base, shelf=shelf)  # raises when the lock does not belong to the series
    bad = {name: kind for name, kind in differences.items() if kind is not Difference.SAME}
    for name, kind in bad.items():
        ctx.out.show(f"{name}: {_REMEDY.get(kind, str(kind))}")
    ctx.out.show(f"{len(differences) - len(bad)} of {len(differences)} patch files are exactly what their commits give")
    ctx.out.document(
        {"base": base.name, "tree": ready.tree, "differences": {name: str(kind) for name, kind in bad.items()}}
    )
    return int(ExitCode.CHECK_FAILED) if bad else 0
