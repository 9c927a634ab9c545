"""`tqforge patch export`: write the commits of the checkout as patch files; `--check` only compares."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters.git import Repository
from tqforge.base import source
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.errors import CheckoutError, ConfigError, ExitCode
from tqforge.series import export
from tqforge.series import series as series_files
from tqforge.series.checkout import prepare
from tqforge.series.export import Difference
from tqforge.series.lock import SeriesPaths

_REMEDY = {
    Difference.SHIFTED: "only line numbers and index ids differ: run `tqforge patch export`, in a commit of its own",
    Difference.MESSAGE: "the message is not in canonical form: run `tqforge patch export`",
    Difference.CHANGED: "the file was edited by hand: change the commit instead, then run `tqforge patch export`",
}


def run(
    ctx: Context,
    *,
    base_name: str | None = None,
    patches: Path | None = None,
    repository: Path | None = None,
    revision: str = "HEAD",
    keep_shifted: bool = False,
) -> int:
    """Write the commits of the checkout (or of another repository) as the series."""
    base = load_base(base_name)
    paths = SeriesPaths.of(base.name, patches)
    with ctx.workspace.lock("tqforge patch export"):
        theirs = Repository(repository.absolute() if repository else ctx.workspace.checkout(base.name))
        _require_clean(theirs, revision)
        changed = export.write(theirs, base.tree, paths, theirs.resolve(revision), keep_shifted=keep_shifted)
        ready = prepare(ctx.workspace, ctx.out, base, paths=paths, discard=repository is None, write_lock=True)
    for name in changed:
        ctx.out.say(f"  wrote {name}")
    ctx.out.show(f"{len(ready.patches)} patches, {len(changed)} files written, tree {ready.tree}")
    ctx.out.document({"base": base.name, "tree": ready.tree, "written": changed})
    return 0


def _require_clean(repository: Repository, revision: str) -> None:
    if not repository.resolve(revision):
        raise CheckoutError(
            f"There is no commit '{revision}'.", where=str(repository.path), remedy="Run `tqforge patch apply` first."
        )
    if revision != "HEAD":
        return  # the work tree does not matter for a commit that was named
    if changes := repository.changes():
        raise CheckoutError(
            f"The checkout has uncommitted changes: {', '.join(line[3:] for line in changes[:8])}.",
            where=str(repository.path),
            remedy="Commit them: `tqforge patch new NAME`, or `git commit --amend` for the last patch.",
        )


def check(ctx: Context, *, base_name: str | None = None, patches: Path | None = None) -> int:
    """Check that the files on disk are exactly the export of their commits, and that the lock is up to date."""
    base = load_base(base_name)
    paths = SeriesPaths.of(base.name, patches)
    series = series_files.load(paths.folder)
    if not series.patches:
        raise ConfigError("There is no patch to check.", where=str(paths.folder))
    with ctx.workspace.lock("tqforge patch export --check"):
        repository, base_commit = source.ensure_base(ctx.workspace, ctx.out, base, source.ARCHIVE)
        differences = export.check(repository, base_commit, series)
        ready = prepare(ctx.workspace, ctx.out, base, paths=paths)  # raises when the lock is out of date
    bad = {name: kind for name, kind in differences.items() if kind is not Difference.SAME}
    for name, kind in bad.items():
        ctx.out.show(f"{name}: {_REMEDY.get(kind, str(kind))}")
    ctx.out.show(f"{len(differences) - len(bad)} of {len(differences)} patch files match their commits exactly")
    ctx.out.document(
        {"base": base.name, "tree": ready.tree, "differences": {name: str(kind) for name, kind in bad.items()}}
    )
    return int(ExitCode.CHECK_FAILED) if bad else 0
