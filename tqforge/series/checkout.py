"""From a pinned base to a checkout that holds it with its whole series: fetch, import, apply, check.

`prepare` is what `build` and `verify` stand on.
"""

from __future__ import annotations

from tqforge.adapters import fs
from tqforge.adapters.git import Repository
from tqforge.base import source as sources
from tqforge.core.reporter import Reporter
from tqforge.core.values import AppliedPatch, Base, Prepared
from tqforge.series import apply, lock
from tqforge.series import series as series_files
from tqforge.series.apply import Stamp
from tqforge.series.lock import Shelf
from tqforge.series.series import Series
from tqforge.workspace import Workspace


def prepare(
    workspace: Workspace,
    reporter: Reporter,
    base: Base,
    *,
    source: str = sources.ARCHIVE,
    shelf: Shelf | None = None,
    discard: bool = False,
    write_lock: bool = False,
) -> Prepared:
    """The checkout of a base with its series applied, checked against `tqforge.lock`.

    `source` is `archive`, `git`, an address, or the path of a folder, repository or archive that the user already
    has. The caller holds the workspace lock. When nothing changed this takes a fraction of a second and writes nothing.
    `discard` throws the user's changes in the checkout away; `write_lock` records the result instead of checking it.
    """
    shelf = shelf or Shelf.of(base.name)
    series = series_files.load(shelf.folder)
    entry = lock.read(shelf.lock).bases.get(base.name)
    if entry and not write_lock:
        lock.check_series(entry, series, shelf.lock)
    if not discard and not write_lock and (ready := _unchanged(workspace, base, source, series)):
        return ready
    fs.remove_leftovers(workspace.downloads)
    fs.remove_leftovers(workspace.checkout(base.name).parent)
    repository, base_commit = sources.ensure_base(workspace, reporter, base, source)
    applied = _apply(repository, base_commit, series, discard=discard)
    if write_lock:
        lock.record(shelf.lock, base.name, base.tree, applied)
    elif entry:
        lock.check_trees(entry, applied, shelf.lock)
    head = applied[-1].commit if applied else base_commit
    apply.move(repository, head)
    tree = applied[-1].tree if applied else base.tree
    stamp = Stamp(
        source=source, base_commit=base_commit, series_sha256=series.sha256, head=head, tree=tree, patches=applied
    )
    apply.write_stamp(repository, stamp)
    reporter.tell(f"  {len(applied)} patches applied, tree {tree}")
    return _prepared(base, repository, stamp, reused=False)


def _apply(repository: Repository, base_commit: str, series: Series, *, discard: bool) -> tuple[AppliedPatch, ...]:
    """Check the user's side first, then prepare the commits aside."""
    stamp = apply.read_stamp(repository)
    if not discard:
        head = repository.resolve(apply.HEAD_REF)
        apply.require_untouched(repository, (base_commit, head, stamp.head if stamp else ""))
    with apply.aside(repository, "apply", base_commit) as work:
        return apply.commit_series(repository, work, series)


def _unchanged(workspace: Workspace, base: Base, origin: str, series: Series) -> Prepared | None:
    """The checkout as it stands, if its stamp, its HEAD and its files say that nothing changed."""
    repository = Repository(workspace.checkout(base.name))
    stamp = apply.read_stamp(repository)
    if not stamp or stamp.series_sha256 != series.sha256:
        return None
    if origin not in (sources.ARCHIVE, sources.GIT, stamp.source):
        return None  # a path is looked at once
    if apply.interrupted(repository) or sources.imported(repository, base) != stamp.base_commit:
        return None
    if repository.resolve("HEAD") != stamp.head or repository.tree(stamp.head) != stamp.tree or repository.changes():
        return None
    return _prepared(base, repository, stamp, reused=True)


def _prepared(base: Base, repository: Repository, stamp: Stamp, *, reused: bool) -> Prepared:
    return Prepared(
        base=base,
        checkout=repository.path,
        base_commit=stamp.base_commit,
        head=stamp.head,
        tree=stamp.tree,
        series_sha256=stamp.series_sha256,
        patches=stamp.patches,
        reused=reused,
    )
