"""What a user asks to verify, resolved to a library and to checked models."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from tqforge.adapters import gguf_io
from tqforge.base import models
from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.core.reporter import Reporter
from tqforge.core.values import Base
from tqforge.report.schema.provenance import BuildProvenance
from tqforge.verify.pairs import check_lengths, check_model
from tqforge.verify.programs import BuildPrograms
from tqforge.verify.session import Target
from tqforge.verify.settings import Settings
from tqforge.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Request:
    """The library, the models and the folders that the command line names."""

    base: str | None = None
    models: tuple[str, ...] = ()
    metal: bool | None = None
    library: Path | None = None
    bindings: Path | None = None
    out: Path | None = None
    compare_with: Path | None = None
    cache_dir: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One model and the folder of its report."""

    facts: gguf_io.ModelFacts
    sha256: str
    folder: Path


def target(workspace: Workspace, reporter: Reporter, request: Request) -> Target:
    """Return the library under test: a build in the workspace, or a folder. Raises LoadError without a build."""
    base = load_base(request.base)
    bindings = (request.bindings or workspace.bindings(base.name)).absolute()
    found = (
        _folder(base, bindings, request) if request.library else _build(workspace, reporter, base, bindings, request)
    )
    return replace(
        found,
        compare_with=request.compare_with and request.compare_with.absolute(),
        cache_dir=request.cache_dir and request.cache_dir.absolute(),
    )


def _folder(base: Base, bindings: Path, request: Request) -> Target:
    """Nothing is known about how the libraries in a folder were built."""
    assert request.library is not None
    provenance = BuildProvenance(
        base=base.name, commit="", tree="", series_sha256="", preset="", flags=(), compiler="", stamp="", version=""
    )
    return Target(library=request.library.absolute(), bindings=bindings, provenance=provenance, gpu=bool(request.metal))


def _build(workspace: Workspace, reporter: Reporter, base: Base, bindings: Path, request: Request) -> Target:
    built = builder.find(workspace, base.name, metal=request.metal)
    stamp = built.stamp
    provenance = BuildProvenance(
        base=stamp.base,
        commit=stamp.commit,
        tree=stamp.tree,
        series_sha256=stamp.series_sha256,
        preset=stamp.preset,
        flags=stamp.arguments,
        compiler=", ".join(f"{name} {version}" for name, version in sorted(stamp.compilers.items())),
        stamp=stamp.id,
        version=stamp.version,
    )
    return Target(
        library=built.bin,
        bindings=bindings,
        provenance=provenance,
        gpu=stamp.metal,
        checkout=workspace.checkout(base.name),
        programs=BuildPrograms(workspace, reporter, built),
    )


def subjects(
    workspace: Workspace, reporter: Reporter, request: Request, settings: Settings, top: Path
) -> list[Subject]:
    """Return every model, checked before the first one is measured.

    The report of one model goes to `top`. Each of several models has its own folder: in --out, or beside `top`.
    """
    found: list[Subject] = []
    names: dict[str, int] = {}
    for wanted in request.models or (None,):
        path, sha256 = models.resolve(workspace, reporter, wanted)
        facts = gguf_io.read(path)
        check_model(facts)
        if "needle" in settings.stages:
            check_lengths(settings.lengths, settings.answer_tokens, facts)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)
        names[name] = names.get(name, 0) + 1
        name += f"-{names[name]}" if names[name] > 1 else ""
        folder = top / name if request.out else top.with_name(f"{top.name}-{name}")
        found.append(Subject(facts=facts, sha256=sha256, folder=top if len(request.models) < 2 else folder))
    return found


def default_threads() -> int:
    """Return the number of physical cores that this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, psutil.cpu_count(logical=False) or usable))
