"""The state of series, checkout and builds. Builds are asked which cache types they accept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters import proc
from tqforge.adapters.git import Repository
from tqforge.adapters.llama.client import Child
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.core.cache_types import TQ3_0
from tqforge.core.values import Base
from tqforge.errors import ConfigError, TqforgeError
from tqforge.series import apply, lock
from tqforge.series import series as series_files
from tqforge.series.lock import SeriesPaths
from tqforge.workspace import Workspace

_ALLOWED = re.compile(r"--cache-type-k TYPE\b.*?allowed values:([^(]*)\(default", re.DOTALL)
_PROBE_PROGRAM = "llama-server"


@dataclass(frozen=True, kw_only=True)
class SeriesState:
    """The patches of a base, and the tree that the lock records for them."""

    patches: tuple[str, ...]
    sha256: str
    tree: str  # of the lock; empty when the base is not locked
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckoutState:
    """The state of the checkout."""

    path: Path
    exists: bool
    tree: str = ""
    applied: int = 0
    interrupted: bool = False
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BuildState:
    """One build, and what it accepts."""

    built: Built
    current: bool  # made from the tree the checkout stands at
    accepts: tuple[str, ...]  # cache types by the program's own words
    knows: bool  # the library resolves tq3_0 by name
    problem: str = ""


def series(base: Base) -> SeriesState:
    """Compare the series of a base with its lock."""
    paths = SeriesPaths.of(base.name)
    found = series_files.load(paths.folder)
    problem, tree = "", ""
    try:
        if entry := lock.read(paths.lock).bases.get(base.name):
            tree = entry.final
            lock.check_series(entry, found, paths.lock)
    except ConfigError as error:
        problem = error.what
    return SeriesState(
        patches=tuple(patch.name for patch in found.patches), sha256=found.sha256, tree=tree, problem=problem
    )


def checkout(workspace: Workspace, base: Base) -> CheckoutState:
    """Return the state of the checkout of a base."""
    repository = Repository(workspace.checkout(base.name))
    stamp = apply.read_stamp(repository) if repository.exists() else None
    if stamp is None:
        return CheckoutState(path=repository.path, exists=False)
    return CheckoutState(
        path=repository.path,
        exists=True,
        tree=repository.tree("HEAD"),
        applied=len(stamp.patches),
        interrupted=apply.interrupted(repository),
        changes=tuple(repository.changes()),
    )


def builds(workspace: Workspace, base: Base, tree: str) -> list[BuildState]:
    """Return the state of every finished build of a base."""
    return [_ask(workspace, base, built, tree) for built in builder.all_builds(workspace, base.name)]


def _ask(workspace: Workspace, base: Base, built: Built, tree: str) -> BuildState:
    accepts: tuple[str, ...] = ()
    knows, problem = False, ""
    try:
        accepts = accepted_types(proc.run([built.bin / _PROBE_PROGRAM, "--help"], timeout=60).stdout)
        bindings = workspace.bindings(base.name)
        with Child(library=built.bin, bindings=bindings, log=built.folder / "status.log") as child:
            knows = TQ3_0 in child.loaded.blocks()
    except (proc.ProcessError, OSError, TimeoutError) as error:
        problem = str(error).splitlines()[0]
    except TqforgeError as error:
        problem = error.what
    return BuildState(built=built, current=built.stamp.tree == tree, accepts=accepts, knows=knows, problem=problem)


def accepted_types(help_text: str) -> tuple[str, ...]:
    """Return the cache types that a program's help lists for `--cache-type-k`."""
    found = _ALLOWED.search(help_text)
    return tuple(word.strip() for word in found[1].replace("\n", " ").split(",")) if found else ()
