"""What the rules look at, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from tqforge.core import toml_file
from tqforge.core.toml_file import Entry
from tqforge.series.lock import Shelf
from tqforge.series.patchfile import PatchFile, PatchFormatError, parse
from tqforge.series.series import Patch, Series


class Tree(Protocol):
    """The files of a commit."""

    def read(self, path: str) -> str | None:
        """The text of a file; None when it is not there."""

    def names(self, folder: str) -> list[str]:
        """The paths of the files below a folder."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, and what to do about it."""

    patch: str  # file name, empty when it is about the series
    message: str
    remedy: str
    rule: str = ""


@dataclass(frozen=True)
class Deferred:
    """A rule that could not run."""

    reason: str
    rule: str = ""


class Scope(Entry):
    """Which files a patch may touch, by the beginning of its name."""

    prefix: str
    files: tuple[str, ...]


class Fork(Entry):
    """Type ids that a known fork or an announced change uses."""

    name: str
    ids: tuple[int, ...]


class Settings(Entry):
    """`third_party/lint.toml`."""

    schema_: Literal[1]
    clearance: int
    scopes: tuple[Scope, ...]
    forks: tuple[Fork, ...]


def load_settings(path: Path) -> Settings:
    """Read the settings. Raises ConfigError."""
    return toml_file.read(path, Settings, "The lint settings")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One series with everything the rules may look at. Trees are None when they could not be had."""

    shelf: Shelf
    base: str
    series: Series
    settings: Settings
    before: Tree | None = None
    after: Tree | None = None
    no_tree: str = "the base is not in the workspace"
    snapshots: Mapping[str, Tree] = field(default_factory=dict)

    def parsed(self) -> Iterable[tuple[Patch, PatchFile]]:
        """The patches that can be parsed; a rule of its own speaks about the others."""
        for patch in self.series.patches:
            try:
                yield patch, parse(patch.text)
            except PatchFormatError:
                continue


Rule = Callable[[Subject], Iterable[Finding | Deferred]]
