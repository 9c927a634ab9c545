"""Prepare the checkout of a base: fetch and import the base, apply its series, check the result against the lock."""

from __future__ import annotations

from tqforge.adapters import fs
from tqforge.adapters.git import Repository
from tqforge.base import source as sources
from tqforge.core.reporter import Reporter
from tqforge.core.values import AppliedPatch, Base, Checkout
from tqforge.series import apply, lock
from tqforge.series import series as series_files
from tqforge.series.apply import Stamp
from tqforge.series.lock import SeriesPaths
from tqforge.series.series import Series
from tqforge.workspace import Workspace


def prepare(
    workspace: Workspace,
    reporter: Reporter,
    base: Base,
    *,
    source: str = sources.ARCHIVE,
    paths: SeriesPaths | None = None,
    discard: bool = False,
    write_lock: bool = False,
) -> Checkout:
    """Return the checkout of a base with its series applied, checked against `tqforge.lock`.

    `source` is `archive`, `git`, an address, or the path of a local folder, repository or archive. The caller holds
    the workspace lock. When nothing changed, this takes a fraction of a second and writes nothing. `discard` drops
    the user's changes in the checkout; `write_lock` records the result instead of checking it.
    """
    paths = paths or SeriesPaths.of(base.name)
    series = series_files.load(paths.folder)
    entry = lock.read(paths.lock).bases.get(base.name)
    if entry and not write_lock:
        lock.check_series(entry, series, paths.lock)
    if not discard and not write_lock and (ready := _unchanged(workspace, base, source, series)):
        return ready
    fs.remove_leftovers(workspace.downloads)
    fs.remove_leftovers(workspace.checkout(base.name).parent)
    repository, base_commit = sources.ensure_base(workspace, reporter, base, source)
    applied = _apply(repository, base_commit, series, discard=discard)
    if write_lock:
        lock.record(paths.lock, base.name, base.tree, applied)
    elif entry:
        lock.check_trees(entry, base.tree, applied, paths.lock)
    head = applied[-1].commit if applied else base_commit
    apply.move(repository, head)
    tree = applied[-1].tree if applied else base.tree
    stamp = Stamp(
        source=source, base_commit=base_commit, series_sha256=series.sha256, head=head, tree=tree, patches=applied
    )
    apply.write_stamp(repository, stamp)
    reporter.tell(f"  {len(applied)} patches applied, tree {tree}")
    return _checkout(base, repository, stamp, reused=False)


def _apply(repository: Repository, base_commit: str, series: Series, *, discard: bool) -> tuple[AppliedPatch, ...]:
    """Refuse to overwrite the user's work, then make the commits in a temporary worktree."""
    stamp = apply.read_stamp(repository)
    if not discard:
        head = repository.resolve(apply.HEAD_REF)
        apply.require_untouched(repository, (base_commit, head, stamp.head if stamp else ""))
    with apply.temporary_worktree(repository, "apply", base_commit) as work:
        return apply.commit_series(repository, work, series)


def _unchanged(workspace: Workspace, base: Base, origin: str, series: Series) -> Checkout | None:
    """Return the checkout as it is, if its stamp, HEAD and files show that nothing changed."""
    repository = Repository(workspace.checkout(base.name))
    stamp = apply.read_stamp(repository)
    if not stamp or stamp.series_sha256 != series.sha256:
        return None
    if origin not in (sources.ARCHIVE, sources.GIT, stamp.source):
        return None  # a path is imported and checked once
    if apply.interrupted(repository) or sources.imported(repository, base) != stamp.base_commit:
        return None
    if repository.resolve("HEAD") != stamp.head or repository.tree(stamp.head) != stamp.tree or repository.changes():
        return None
    return _checkout(base, repository, stamp, reused=True)


def _checkout(base: Base, repository: Repository, stamp: Stamp, *, reused: bool) -> Checkout:
    return Checkout(
        base=base,
        path=repository.path,
        base_commit=stamp.base_commit,
        head=stamp.head,
        tree=stamp.tree,
        series_sha256=stamp.series_sha256,
        patches=stamp.patches,
        reused=reused,
    )
