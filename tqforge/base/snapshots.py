"""Import other versions of llama.cpp beside a base, to try the series on: archives, revisions, folders.

Each becomes one commit made from its tree, so that git can do three-way merges with the base.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tqforge import resources
from tqforge.adapters.git import Repository
from tqforge.base import source
from tqforge.base.pins import Hex64
from tqforge.core import toml_file
from tqforge.core.reporter import Reporter
from tqforge.core.toml_file import Entry
from tqforge.core.values import Archive, Base
from tqforge.errors import UsageError
from tqforge.workspace import Workspace

_REFS = "refs/tqforge/snapshots/"


@dataclass(frozen=True)
class Snapshot:
    """One imported version."""

    label: str
    commit: str
    tree: str
    origin: str  # archive sha256, commit or path


class _Pin(Entry):
    version: str
    sha256: Hex64
    size: int | None = None


class _Pins(Entry):
    schema_: Literal[1]
    snapshots: tuple[_Pin, ...]


def pins(path: Path | None = None) -> dict[str, _Pin]:
    """Return the pinned archives by version, from `third_party/snapshots.toml`. Raises ConfigError."""
    where = path or resources.third_party() / "snapshots.toml"
    table = toml_file.read(where, _Pins, "The table of snapshots")
    return {pin.version: pin for pin in table.snapshots}


def imported(repository: Repository) -> dict[str, str]:
    """Return label and commit of every snapshot in the repository."""
    if not repository.exists():
        return {}
    with repository.reader() as reader:
        return reader.references(_REFS)


def import_snapshot(
    workspace: Workspace, reporter: Reporter, repository: Repository, base: Base, target: str
) -> Snapshot:
    """Import the target of `--to`: an archive version, a git revision (40 digits, or URL#REVISION), or a folder."""
    pinned = pins().get(target)
    if pinned:
        present = repository.resolve(_REFS + target)
        if present and pinned.sha256 in repository.message(present):
            return Snapshot(target, present, repository.tree(present), pinned.sha256)
        return _archive(workspace, reporter, repository, base, pinned)
    path = Path(target).expanduser()
    if path.exists():
        return _path(reporter, repository, base, path.absolute())
    if "#" in target or _is_commit(target):
        address, _, revision = target.rpartition("#")
        return _git(reporter, repository, address or base.repository, revision)
    known = ", ".join(pins()) or "none"
    raise UsageError(
        f"--to '{target}' is not a pinned archive version, a path or a git revision.",
        remedy=f"Pinned versions: {known}. Or give a folder, a full commit id, or ADDRESS#REVISION.",
    )


def _is_commit(text: str) -> bool:
    return len(text) == 40 and all(letter in "0123456789abcdef" for letter in text)


def _archive(workspace: Workspace, reporter: Reporter, repository: Repository, base: Base, pin: _Pin) -> Snapshot:
    name = f"{base.archive.filename.rsplit('-', 1)[0]}-{pin.version}.tar.gz"
    archive: Archive = replace(base.archive, version=pin.version, filename=name, sha256=pin.sha256, size=pin.size)
    reporter.step(f"{archive.project} {pin.version}")
    path = source.obtain_archive(workspace, reporter, archive)
    tree = source.import_archive(reporter, repository, path, archive)
    return _record(repository, pin.version, tree, pin.sha256)


def _path(reporter: Reporter, repository: Repository, base: Base, path: Path) -> Snapshot:
    origin = source.Source.parse(str(path), base)
    if origin.kind == "file":
        raise UsageError("--to takes a folder, not an archive file.", remedy="Unpack it and give its vendor/llama.cpp.")
    folder = Path(origin.where)
    theirs = Repository(folder)
    head = theirs.tree("HEAD") if origin.kind == "repository" else ""
    tree = source.copy_tree(repository, theirs, head) if head else ""
    reporter.step(f"{folder}: {'its HEAD commit' if tree else 'its files'}")
    return _record(repository, path.name, tree or source.add_folder(repository, folder), str(path))


def _git(reporter: Reporter, repository: Repository, address: str, revision: str) -> Snapshot:
    reporter.step(f"{revision[:12]} from {address}")
    with reporter.meter(f"fetch {revision[:12]}", 100) as meter:
        commit = repository.fetch(address, revision, progress=meter.update)
    return _record(repository, revision[:40], repository.tree(commit), commit)


def _record(repository: Repository, label: str, tree: str, origin: str) -> Snapshot:
    """Create the commit of a tree; the same content always gives the same id."""
    commit = repository.commit_tree(tree, f"snapshot {label}\n\n{origin}\n")
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in label).strip(".-")
    digest = hashlib.sha256(label.encode()).hexdigest()[:6]
    repository.git("update-ref", _REFS + (safe if safe == label else f"{safe or 'x'}-{digest}"), commit)
    return Snapshot(label, commit, tree, origin)
