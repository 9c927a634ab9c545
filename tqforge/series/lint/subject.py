"""The input of the lint rules, loaded from the workspace, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from tqforge import resources
from tqforge.adapters.git import Repository
from tqforge.base import snapshots, source
from tqforge.core import toml_file
from tqforge.core.reporter import Reporter
from tqforge.core.toml_file import Entry
from tqforge.core.values import Base
from tqforge.errors import DownloadError, PatchError
from tqforge.series import apply, series
from tqforge.series.lock import SeriesPaths
from tqforge.series.patchfile import PatchFile, PatchFormatError, parse
from tqforge.series.series import Patch, Series
from tqforge.workspace import Workspace


class SourceTree(Protocol):
    """The files of a commit."""

    def read(self, path: str) -> str | None:
        """Return the text of a file; None when the tree has no such file."""

    def names(self, folder: str) -> list[str]:
        """Return the paths of the files below a folder."""


@dataclass(frozen=True)
class Finding:
    """One violation of a rule, with a remedy."""

    patch: str  # file name, empty when it is about the series
    message: str
    remedy: str
    rule: str = ""


@dataclass(frozen=True)
class Skipped:
    """A rule that could not run, with the reason."""

    reason: str
    rule: str = ""


class Scope(Entry):
    """The files that a patch may touch, chosen by the prefix of its name."""

    prefix: str
    files: tuple[str, ...]


class Fork(Entry):
    """Type ids used by a known fork or an announced change."""

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
    """A series and everything the rules may read. Trees are None when they are not available."""

    paths: SeriesPaths
    base: str
    series: Series
    settings: Settings
    before: SourceTree | None = None
    after: SourceTree | None = None
    no_tree: str = "the base is not in the workspace"
    snapshots: Mapping[str, SourceTree] = field(default_factory=dict)

    def parsed(self) -> Iterable[tuple[Patch, PatchFile]]:
        """Yield the patches that can be parsed; the rule `well-formed` reports the others."""
        for patch in self.series.patches:
            try:
                yield patch, parse(patch.text)
            except PatchFormatError:
                continue


Rule = Callable[[Subject], Iterable[Finding | Skipped]]


def load(workspace: Workspace, reporter: Reporter, base: Base, paths: SeriesPaths) -> Subject:
    """Load the series, the base, the patched tree and the imported snapshots. The caller holds the workspace lock."""
    chosen = series.load(paths.folder)
    before, after, reason = _trees(workspace, reporter, base, chosen)
    repository = Repository(workspace.checkout(base.name))
    imported = snapshots.imported(repository) if before else {}
    return Subject(
        paths=paths,
        base=base.name,
        series=chosen,
        settings=load_settings(resources.third_party() / "lint.toml"),
        before=before,
        after=after,
        no_tree=reason,
        snapshots={label: repository.files(commit) for label, commit in imported.items()},
    )


def _trees(
    workspace: Workspace, reporter: Reporter, base: Base, chosen: Series
) -> tuple[SourceTree | None, SourceTree | None, str]:
    """Return the base and the patched tree, or the reason why they are not available. The checkout is not touched."""
    try:
        repository, commit = source.ensure_base(workspace, reporter, base, source.ARCHIVE)
        with apply.temporary_worktree(repository, "lint", commit) as work:
            apply.commit_series(repository, work, chosen)
            head = work.resolve("HEAD")
    except DownloadError as error:
        return None, None, f"the base is not available: {error.what}"
    except PatchError as error:
        return None, None, f"the series does not apply: {error.what}"
    return repository.files(commit), repository.files(head), ""
