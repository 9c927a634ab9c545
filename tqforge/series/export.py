"""Export commits as patch files, with the same bytes on every machine, and compare them with the files on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from pathlib import Path

from tqforge.adapters import fs
from tqforge.adapters.git import Repository
from tqforge.errors import ConfigError, PatchError
from tqforge.series import apply
from tqforge.series.lock import SeriesPaths
from tqforge.series.patchfile import PatchFile, PatchFormatError, parse
from tqforge.series.series import SERIES, SUFFIX, Patch, Series, load, names
from tqforge.series.trailers import NAME

_FORMAT = (
    *("format-patch", "--quiet", "--zero-commit", "--no-signature", "--full-index", "--no-numbered", "--no-stat"),
    *("--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--no-notes", "--no-attach", "--no-thread"),
    *("--no-cover-letter", "--no-base", "--no-to", "--no-cc", "--no-add-header", "--unified=3", "--src-prefix=a/"),
    *("--dst-prefix=b/", "--diff-algorithm=myers", "--subject-prefix=PATCH", f"--suffix={SUFFIX}"),
)


class Difference(StrEnum):
    """How an exported patch relates to the file on disk."""

    SAME = "same"
    SHIFTED = "shifted"  # the same change: only line numbers and index ids differ
    MESSAGE = "message"  # the same change under another message
    CHANGED = "changed"
    NEW = "new"
    REMOVED = "removed"  # on disk only


@dataclass(frozen=True)
class Exported:
    """One commit as a patch file in canonical form."""

    name: str
    data: bytes
    commit: str

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")


def base_of(repository: Repository, head: str, tree: str) -> str:
    """Return the nearest ancestor with the tree of the base. Raises PatchError."""
    with repository.reader() as reader:
        for commit, its_tree in reader.first_parents(head):
            if its_tree == tree:
                return commit
    raise PatchError(
        f"No ancestor of {head[:12]} has the tree of the base, {tree}.",
        where=str(repository.path),
        remedy="Commit on top of the checkout that `tqforge patch apply` made.",
    )


def format_patches(repository: Repository, first: str, last: str) -> list[bytes]:
    """Format every commit of a range as a canonical mail. Raises PatchError for a merge or an empty commit."""
    commits = repository.commits(first, last)
    folder = Path(tempfile.mkdtemp(prefix="tqforge-export-"))
    try:
        if commits:
            repository.git(*_FORMAT, "-o", folder, f"{first}..{last}")
        found = [path.read_bytes() for path in sorted(folder.iterdir())]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if len(found) != len(commits):
        raise PatchError(
            "The series contains a merge or an empty commit.",
            where=str(repository.path),
            remedy="Rebase it to a linear history without empty commits.",
        )
    return found


def export_commits(repository: Repository, first: str, last: str) -> tuple[Exported, ...]:
    """Export every commit of a range under its name. Raises ConfigError for a commit without a name."""
    commits = repository.commits(first, last)
    found = [
        _named(data, commit) for data, commit in zip(format_patches(repository, first, last), commits, strict=True)
    ]
    for item in found:
        if sum(other.name == item.name for other in found) > 1:
            raise ConfigError(
                f"Two commits have the name {item.name}.", remedy=f"Change the {NAME}: trailer of one of them."
            )
    return tuple(found)


def _named(data: bytes, commit: str) -> Exported:
    patch = parse(data.decode("utf-8", "surrogateescape"))
    title = patch.trailer(NAME)
    if not title or "/" in title or " " in title:
        raise ConfigError(
            f"Commit {commit[:12]} ({patch.subject}) has no valid {NAME}: trailer.",
            remedy=f"git commit --amend --trailer '{NAME}: <short-name>'",
        )
    return Exported(title + SUFFIX, data, commit)


def compare(series: Series, exported: Sequence[Exported]) -> dict[str, Difference]:
    """Return by file name how the commits differ from the files on disk, in the order of the commits."""
    present = {patch.name: patch for patch in series.patches}
    result = {item.name: _difference(present.get(item.name), item) for item in exported}
    return result | {name: Difference.REMOVED for name in present if name not in result}


def _difference(old: Patch | None, new: Exported) -> Difference:
    if old is None:
        return Difference.NEW
    if old.data == new.data:
        return Difference.SAME
    try:
        before, after = parse(old.text), parse(new.text)
    except PatchFormatError:
        return Difference.CHANGED
    if _change(before) != _change(after):
        return Difference.CHANGED
    if (before.headers, before.body) != (after.headers, after.body):
        return Difference.MESSAGE
    return Difference.SHIFTED


def _change(patch: PatchFile) -> list[tuple[list[str], list[tuple[str, ...]]]]:
    """Return the change without positions and index ids. Unlike `git patch-id`, white space counts."""
    return [
        ([line for line in diff.head if not line.startswith("index ")], [hunk.lines for hunk in diff.hunks])
        for diff in patch.files
    ]


def write(theirs: Repository, tree: str, paths: SeriesPaths, head: str, *, keep_shifted: bool = False) -> list[str]:
    """Write the commits from the base (known by its tree) to `head` as the series; return the names of changed files.

    With `keep_shifted`, patches whose change is the same and only shifted are left alone.
    """
    exported = export_commits(theirs, base_of(theirs, head, tree), head)
    if not exported:
        raise ConfigError("There is no commit to export.", where=str(theirs.path), remedy="Commit your change first.")
    if paths.installed:
        raise ConfigError(
            "The series of an installed tqforge is read-only.",
            where=str(paths.folder),
            remedy="Work in a clone of tqforge, or name a folder of your own with --patches.",
        )
    differences = compare(load(paths.folder), exported)
    return _write_series(paths.folder, exported, differences, keep_shifted=keep_shifted)


def check(repository: Repository, base_commit: str, series: Series) -> dict[str, Difference]:
    """Apply the series and return how each file differs from the export of its commit."""
    with apply.temporary_worktree(repository, "check", base_commit) as work:
        apply.commit_series(repository, work, series)
        exported = export_commits(work, base_commit, work.resolve("HEAD"))
    return compare(series, exported)


def _write_series(
    folder: Path, exported: Sequence[Exported], differences: dict[str, Difference], *, keep_shifted: bool
) -> list[str]:
    keep = {Difference.SAME, Difference.SHIFTED} if keep_shifted else {Difference.SAME}
    written = []
    for item in exported:
        if differences[item.name] not in keep:
            with fs.atomic_path(folder / item.name) as temporary:
                temporary.write_bytes(item.data)
                temporary.chmod(0o644)
            written.append(item.name)
    wanted = [item.name for item in exported]
    if names(folder) != wanted:
        fs.write_text(folder / SERIES, _listing(folder / SERIES, wanted))
        written.append(SERIES)
    for name, difference in differences.items():
        if difference is Difference.REMOVED:
            (folder / name).unlink()
            written.append(name)
    return written


def _listing(path: Path, wanted: Sequence[str]) -> str:
    """Return the new series file; the comments at its top stay."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    top = takewhile(lambda line: not line.strip() or line.startswith("#"), lines)
    return "".join(f"{line}\n" for line in [*top, *wanted])
