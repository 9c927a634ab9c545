"""`tqforge verify`: all stages on the built library, and a report of whatever was observed."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from tqforge.adapters import fs, gguf_io
from tqforge.base import models
from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.context import Context
from tqforge.errors import ExitCode
from tqforge.report.render import html, models_page
from tqforge.report.render.terminal import screen
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.provenance import BuildProvenance
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import Stage
from tqforge.verify import run as running
from tqforge.verify.pairs import check_lengths, check_model
from tqforge.verify.programs import BuildPrograms
from tqforge.verify.session import Session, Target
from tqforge.verify.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Where:
    """What is verified, and where the report goes."""

    base: str | None = None
    models: tuple[str, ...] = ()
    metal: bool | None = None
    library: Path | None = None
    bindings: Path | None = None
    out: Path | None = None
    beside: Path | None = None
    fills: Path | None = None


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """One model, checked before the first one is measured, and the folder of its report."""

    facts: gguf_io.ModelFacts
    sha256: str
    folder: Path


def run(ctx: Context, settings: Settings, where: Where) -> int:
    """Exit code 0 when all that ran is good, 1 when a check fell short, the code of the first error otherwise."""
    with ctx.workspace.lock("tqforge verify"):
        return _run(ctx, settings, where)


def _run(ctx: Context, settings: Settings, where: Where) -> int:
    started = datetime.now(UTC)
    target = replace(
        _target(ctx, where),
        compare_with=where.beside and where.beside.absolute(),
        cache_dir=where.fills and where.fills.absolute(),
    )
    settings = replace(settings, threads=settings.threads or _threads())
    top = (where.out or ctx.workspace.runs / started.strftime("%Y%m%dT%H%M%SZ")).absolute()
    subjects = _subjects(ctx, settings, where, top)
    reports: list[Report] = []
    codes: list[int] = []
    for subject in subjects:
        subject.folder.mkdir(parents=True, exist_ok=True)
        try:
            codes.append(_verify(ctx, settings, target, subject, reports))
        finally:
            if len(subjects) > 1 and reports:
                _compare(ctx, top, subjects, reports)
    if len(reports) == 1:
        ctx.out.document(reports[0].to_json())
    else:
        ctx.out.document({"reports": [report.to_json() for report in reports]})
    return max(codes)


def _subjects(ctx: Context, settings: Settings, where: Where, top: Path) -> list[_Subject]:
    """One model has the folder to itself; each of several has its own beside (in --out: below) the page of all."""
    found: list[_Subject] = []
    names: dict[str, int] = {}
    for wanted in where.models or (None,):
        path, sha256 = models.resolve(ctx.workspace, wanted, ctx.out)
        facts = gguf_io.read(path)
        check_model(facts)
        if "needle" in settings.stages:
            check_lengths(settings.lengths, settings.answer_tokens, facts)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)
        names[name] = names.get(name, 0) + 1
        name += f"-{names[name]}" if names[name] > 1 else ""
        folder = top if len(where.models) < 2 else top / name if where.out else top.with_name(f"{top.name}-{name}")
        found.append(_Subject(facts=facts, sha256=sha256, folder=folder))
    return found


def _verify(ctx: Context, settings: Settings, target: Target, subject: _Subject, reports: list[Report]) -> int:
    """All stages on one model; its report is kept in `reports` as it grows."""
    started, place = datetime.now(UTC), len(reports)
    session = Session(
        out=ctx.out,
        target=target,
        settings=settings,
        facts=subject.facts,
        folder=subject.folder,
        model_sha256=subject.sha256,
    )

    def keep(stages: list[Stage]) -> Report:
        report = running.report(session, stages, command=("tqforge", *ctx.argv), started=started)
        reports[place:] = [report]
        _write(report, subject.folder)
        return report

    try:
        outcome = running.run_stages(session, keep)
    finally:
        session.close()
    report = keep(outcome.stages)
    ctx.out.show(screen.render(report))
    ctx.out.say(f"report: {subject.folder / 'report.html'}")
    if outcome.interrupted is not None:
        ctx.out.document(report.to_json())
        raise outcome.interrupted
    if outcome.error:
        ctx.out.problem(outcome.error)
        return int(outcome.error.code)
    good = report.status in (StageStatus.PASSED, StageStatus.SKIPPED)
    return int(ExitCode.OK if good else ExitCode.CHECK_FAILED)


def _compare(ctx: Context, top: Path, subjects: list[_Subject], reports: list[Report]) -> None:
    """One page over all models, with a link to each one's own."""
    top.mkdir(parents=True, exist_ok=True)
    links = [os.path.relpath(subject.folder / "report.html", top) for subject in subjects]
    fs.write_text(top / "report.html", models_page.render(list(zip(links, reports, strict=False))))
    ctx.out.say(f"all models: {top / 'report.html'}")


def _write(report: Report, folder: Path) -> None:
    fs.write_text(folder / "report.json", json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    fs.write_text(folder / "report.html", html.render(report))


def _target(ctx: Context, where: Where) -> Target:
    base = load_base(where.base)
    bindings = where.bindings or ctx.workspace.bindings(base.name)
    if where.library is not None:
        provenance = BuildProvenance(
            base=base.name, commit="", tree="", series_sha256="", preset="", flags=(), compiler="", stamp="", version=""
        )
        named = where.library.absolute()
        return Target(library=named, bindings=bindings.absolute(), provenance=provenance, gpu=bool(where.metal))
    built = builder.find(ctx, base.name, metal=where.metal)
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
        checkout=ctx.workspace.checkout(base.name),
        programs=BuildPrograms(ctx, built),
    )


def _threads() -> int:
    """Physical cores this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, psutil.cpu_count(logical=False) or usable))
