"""`tqforge verify`: run the stages on the built library and write the report."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tqforge.adapters import fs
from tqforge.context import Context
from tqforge.errors import ExitCode
from tqforge.report.render import html, models_page
from tqforge.report.render.terminal import screen
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import Stage
from tqforge.verify import request as requests
from tqforge.verify import run as running
from tqforge.verify.request import Request, Subject
from tqforge.verify.session import Session, Target
from tqforge.verify.settings import Settings


def run(ctx: Context, settings: Settings, request: Request) -> int:
    """Verify, and return 0 when every check passed, 1 when one failed, or the code of the first error."""
    with ctx.workspace.lock("tqforge verify"):
        return _run(ctx, settings, request)


def _run(ctx: Context, settings: Settings, request: Request) -> int:
    started = datetime.now(UTC)
    target = requests.target(ctx.workspace, ctx.out, request)
    settings = replace(settings, threads=settings.threads or requests.default_threads())
    top = (request.out or ctx.workspace.runs / started.strftime("%Y%m%dT%H%M%SZ")).absolute()
    subjects = requests.subjects(ctx.workspace, ctx.out, request, settings, top)
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


def _verify(ctx: Context, settings: Settings, target: Target, subject: Subject, reports: list[Report]) -> int:
    """Run all stages on one model. Its report is in `reports`, and on disk, after every stage."""
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
    ctx.out.tell(f"report: {subject.folder / 'report.html'}")
    if outcome.interrupted is not None:
        ctx.out.document(report.to_json())
        raise outcome.interrupted
    if outcome.error:
        ctx.out.problem(outcome.error)
        return int(outcome.error.code)
    good = report.status in (StageStatus.PASSED, StageStatus.SKIPPED)
    return int(ExitCode.OK if good else ExitCode.CHECK_FAILED)


def _compare(ctx: Context, top: Path, subjects: list[Subject], reports: list[Report]) -> None:
    """Write the page that compares all models."""
    top.mkdir(parents=True, exist_ok=True)
    links = [os.path.relpath(subject.folder / "report.html", top) for subject in subjects]
    fs.write_text(top / "report.html", models_page.render(list(zip(links, reports, strict=False))))
    ctx.out.tell(f"all models: {top / 'report.html'}")


def _write(report: Report, folder: Path) -> None:
    fs.write_text(folder / "report.json", json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    fs.write_text(folder / "report.html", html.render(report))
