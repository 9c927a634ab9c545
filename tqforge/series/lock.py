"""Read, write and check `third_party/tqforge.lock`.

The lock records for each base its tree, and for each patch its sha256, its patch id and the tree after it. It is
written by `tqforge patch export`, never by hand, and shows without a build that two machines have the same source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from tqforge import resources
from tqforge.adapters import fs
from tqforge.base.pins import Hex40, Hex64
from tqforge.core import toml_file
from tqforge.core.toml_file import Entry
from tqforge.core.values import AppliedPatch
from tqforge.errors import ConfigError, IntegrityError
from tqforge.series.series import Series

FILENAME = "tqforge.lock"
_HEAD = "# Written by `tqforge patch export`. Do not edit.\nschema = 1\n"


@dataclass(frozen=True)
class SeriesPaths:
    """The folder of a series and its lock file."""

    folder: Path
    lock: Path

    @classmethod
    def of(cls, base: str, folder: Path | None = None) -> SeriesPaths:
        """Return the series that ships with tqforge, or a folder of the user's own with its lock inside."""
        if folder:
            return cls(folder, folder / FILENAME)
        return cls(resources.patches_dir(base), resources.third_party() / FILENAME)

    @property
    def installed(self) -> bool:
        """Whether the series lies inside an installed package."""
        return self.folder.parent.parent.name == "_data"


class LockedPatch(Entry):
    """The expected result of one patch."""

    name: str
    sha256: Hex64
    patch_id: Hex40
    tree: Hex40


class LockedBase(Entry):
    """The expected trees of a base and its series."""

    tree: Hex40
    final: Hex40
    patches: tuple[LockedPatch, ...] = ()


class Lock(Entry):
    """The lock file."""

    schema_: Literal[1]
    bases: dict[str, LockedBase] = Field(default_factory=dict)


def read(path: Path) -> Lock:
    """Read the lock; an empty one when the file does not exist. Raises ConfigError."""
    text = None if path.exists() else _HEAD
    return toml_file.read(path, Lock, "The lock", remedy=_REWRITE, text=text)


_REWRITE = "Restore the file, or regenerate it with `tqforge patch apply --write-lock`."


def render(lock: Lock) -> str:
    """Return the text of a lock; the same content gives the same bytes."""
    text = _HEAD
    for name, base in sorted(lock.bases.items()):
        text += f'\n[bases.{name}]\ntree = "{base.tree}"\nfinal = "{base.final}"\n'
        for patch in base.patches:
            text += f"\n[[bases.{name}.patches]]\n"
            text += "".join(f'{key} = "{value}"\n' for key, value in patch.model_dump().items())
    return text


def record(path: Path, base: str, tree: str, patches: Sequence[AppliedPatch]) -> bool:
    """Write the applied patches as the lock entry of a base; return whether the file changed."""
    entries = tuple(
        LockedPatch(name=patch.name, sha256=patch.sha256, patch_id=patch.patch_id, tree=patch.tree) for patch in patches
    )
    entry = LockedBase(tree=tree, final=entries[-1].tree if entries else tree, patches=entries)
    old = read(path)
    text = render(old.model_copy(update={"bases": {**old.bases, base: entry}}))
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    fs.write_text(path, text)
    return True


def check_series(entry: LockedBase, series: Series, where: Path) -> None:
    """Check that the files on disk are the locked ones, in the locked order. Raises ConfigError."""
    locked = [(patch.name, patch.sha256) for patch in entry.patches]
    present = [(patch.name, patch.sha256) for patch in series.patches]
    if locked == present:
        return
    wanted = dict(locked)
    names = [name for name, _ in present]
    if names != [name for name, _ in locked]:
        what = "The series and the lock list different patches, or the same patches in another order."
    else:
        changed = [name for name, digest in present if wanted[name] != digest]
        what = f"The lock entry of {', '.join(changed)} is out of date."
    raise ConfigError(
        what, where=str(where), remedy="Restore the files, or accept them with `tqforge patch apply --write-lock`."
    )


def check_trees(entry: LockedBase, tree: str, patches: Sequence[AppliedPatch], where: Path) -> None:
    """Check that a base and its patches give the locked trees. Raises IntegrityError for the first difference."""
    if entry.tree != tree:
        raise IntegrityError(
            f"The lock was written for a base with tree {entry.tree}, this base has {tree}.",
            where=str(where),
            remedy="If the base was changed on purpose, run `tqforge patch apply --write-lock`.",
        )
    for locked, applied in zip(entry.patches, patches, strict=True):
        if (locked.tree, locked.patch_id) != (applied.tree, applied.patch_id):
            raise IntegrityError(
                f"After {applied.name} the tree is {applied.tree}, the lock says {locked.tree}.",
                where=str(where),
                remedy="Update git (2.38 or newer), or report this with the output of `tqforge doctor`.",
            )
