"""What stands in the workspace, read without changing it; what the builds accept is asked of them, not remembered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters import proc
from tqforge.adapters.git import Repository
from tqforge.adapters.llama.client import Child
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.context import Context
from tqforge.core.cache_types import TQ3_0
from tqforge.core.values import Base
from tqforge.errors import ConfigError, TqforgeError
from tqforge.series import apply, lock
from tqforge.series import series as series_files
from tqforge.series.lock import SeriesPaths

_ALLOWED = re.compile(r"--cache-type-k TYPE\b.*?allowed values:([^(]*)\(default", re.DOTALL)
_PROBE_PROGRAM = "llama-server"


@dataclass(frozen=True, kw_only=True)
class SeriesState:
    """The patches that travel with this tqforge, and what the lock says they give."""

    patches: tuple[str, ...]
    sha256: str
    tree: str  # of the lock; empty when the base is not locked
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckoutState:
    """Where the checkout stands."""

    path: Path
    exists: bool
    tree: str = ""
    applied: int = 0
    interrupted: bool = False
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BuildState:
    """One build, and what it answered when it was asked just now."""

    built: Built
    current: bool  # made from the tree the checkout stands at
    accepts: tuple[str, ...]  # cache types by the program's own words
    knows: bool  # the library resolves tq3_0 by name
    problem: str = ""


def series(base: Base) -> SeriesState:
    """The series of a base against its lock."""
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


def checkout(ctx: Context, base: Base) -> CheckoutState:
    """The checkout of a base, with the user's changes if there are any."""
    repository = Repository(ctx.workspace.checkout(base.name))
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


def builds(ctx: Context, base: Base, tree: str) -> list[BuildState]:
    """Every finished build of a base, asked what it accepts."""
    return [_ask(ctx, base, built, tree) for built in builder.all_builds(ctx, base.name)]


def _ask(ctx: Context, base: Base, built: Built, tree: str) -> BuildState:
    accepts: tuple[str, ...] = ()
    knows, problem = False, ""
    try:
        accepts = accepted_types(proc.run([built.bin / _PROBE_PROGRAM, "--help"], timeout=60).stdout)
        bindings = ctx.workspace.bindings(base.name)
        with Child(library=built.bin, bindings=bindings, log=built.folder / "status.log") as child:
            knows = TQ3_0 in child.loaded.blocks()
    except (proc.ProcessError, OSError, TimeoutError) as error:
        problem = str(error).splitlines()[0]
    except TqforgeError as error:
        problem = error.what
    return BuildState(built=built, current=built.stamp.tree == tree, accepts=accepts, knows=knows, problem=problem)


def accepted_types(help_text: str) -> tuple[str, ...]:
    """The cache types that a program lists for `--cache-type-k`."""
    found = _ALLOWED.search(help_text)
    return tuple(word.strip() for word in found[1].replace("\n", " ").split(",")) if found else ()
