"""Commits as patch files: the same bytes on every machine, compared with what lies on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tqforge.adapters import fs
from tqforge.adapters.git import Repository
from tqforge.errors import ConfigError, PatchError
from tqforge.series.patchfile import parse
from tqforge.series.series import SERIES, SUFFIX, Series, names

NAME = "Patch-Name"
_FORMAT = (
    *("format-patch", "--quiet", "--zero-commit", "--no-signature", "--full-index", "--no-numbered", "--no-stat"),
    *("--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--no-notes", "--no-attach", "--no-thread"),
    *("--no-cover-letter", "--no-base", "--no-to", "--no-cc", "--no-add-header", "--unified=3", "--src-prefix=a/"),
    *("--dst-prefix=b/", "--diff-algorithm=myers", "--subject-prefix=PATCH", "--suffix=.patch"),
)


class Difference(StrEnum):
    """How an exported patch relates to the file on disk."""

    SAME = "same"
    MOVED = "moved"  # the same change: only positions and index ids differ
    MESSAGE = "message"  # the same change under another message
    CHANGED = "changed"
    NEW = "new"
    GONE = "gone"  # on disk only


@dataclass(frozen=True)
class Exported:
    """One commit in canonical form."""

    name: str
    data: bytes
    commit: str

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")


def base_of(repository: Repository, head: str, tree: str) -> str:
    """The nearest ancestor that is the base, known by its tree. Raises PatchError."""
    with repository.reader() as reader:
        for commit, its_tree in reader.first_parents(head):
            if its_tree == tree:
                return commit
    raise PatchError(
        f"No ancestor of {head[:12]} has the base's tree {tree}.",
        where=str(repository.path),
        remedy="Commit on top of the checkout that `tqforge patch apply` made.",
    )


def format_patches(repository: Repository, first: str, last: str) -> list[bytes]:
    """Every commit of a range in canonical mail form. Raises PatchError for a merge or an empty commit."""
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
            "The series has a merge or an empty commit.", where=str(repository.path), remedy="Rebase it to one line."
        )
    return found


def export_commits(repository: Repository, first: str, last: str) -> tuple[Exported, ...]:
    """Every commit of a range as a patch file with its name. Raises ConfigError for a commit without a name."""
    commits = repository.commits(first, last)
    found = [
        _named(data, commit) for data, commit in zip(format_patches(repository, first, last), commits, strict=True)
    ]
    for item in found:
        if sum(other.name == item.name for other in found) > 1:
            raise ConfigError(f"Two commits are named {item.name}.", remedy=f"Change the {NAME}: line of one of them.")
    return tuple(found)


def _named(data: bytes, commit: str) -> Exported:
    patch = parse(data.decode("utf-8", "surrogateescape"))
    title = patch.trailer(NAME)
    if not title or "/" in title or " " in title:
        raise ConfigError(
            f"Commit {commit[:12]} ({patch.subject}) has no usable {NAME}: line.",
            remedy=f"git commit --amend --trailer '{NAME}: <short-name>'",
        )
    return Exported(title + SUFFIX, data, commit)


def compare(repository: Repository, series: Series, exported: Sequence[Exported]) -> dict[str, Difference]:
    """Per file name how the commits differ from the files on disk, in the order of the commits."""
    present = {patch.name: patch for patch in series.patches}
    result: dict[str, Difference] = {}
    for item in exported:
        old = present.get(item.name)
        if old is None:
            result[item.name] = Difference.NEW
        elif old.data == item.data:
            result[item.name] = Difference.SAME
        elif repository.patch_id(old.text) != repository.patch_id(item.text):
            result[item.name] = Difference.CHANGED
        elif _message(old.text) != _message(item.text):
            result[item.name] = Difference.MESSAGE
        else:
            result[item.name] = Difference.MOVED
    return result | {name: Difference.GONE for name in present if name not in result}


def _message(text: str) -> object:
    try:
        patch = parse(text)
    except ValueError:
        return text
    return (patch.headers, patch.body)


def write_series(
    folder: Path, exported: Sequence[Exported], differences: dict[str, Difference], *, moved: bool
) -> list[str]:
    """Write what changed, with `moved` also what only moved; the names written or removed."""
    keep = {Difference.SAME} if moved else {Difference.SAME, Difference.MOVED}
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
        if difference is Difference.GONE:
            (folder / name).unlink()
            written.append(name)
    return written


def _listing(path: Path, wanted: Sequence[str]) -> str:
    """The new series file; the comments at its top stay."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    top: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith("#"):
            break
        top.append(line)
    return "".join(f"{line}\n" for line in [*top, *wanted])
