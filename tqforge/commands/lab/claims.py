"""`tqforge lab claims`: published claims, each as an experiment with a verdict."""

from __future__ import annotations

import json
from pathlib import Path

from tqforge.adapters import fs
from tqforge.context import Context
from tqforge.lab import page, record, session
from tqforge.lab.claims import registry
from tqforge.lab.record import LabRecord
from tqforge.lab.run import Wanted
from tqforge.verify import request as requests
from tqforge.verify.request import Request

PAGE = "claims.md"


def run(
    ctx: Context, request: Request, *, threads: int | None = None, out: Path | None = None, recorded: Path | None = None
) -> int:
    """Measure what the claims need, or read a record, and print the verdicts."""
    folder = (out or ctx.workspace.runs / "lab").absolute()
    found = record.read(recorded) if recorded else _measure(ctx, request, threads, folder)
    fs.write_text(folder / PAGE, page.claims_page(found))
    rows = page.claim_rows(found)
    ctx.out.table([(row[0].strip("`"), row[-1], row[-2]) for row in rows], head=("claim", "verdict", "this run"))
    ctx.out.say(f"page: {folder / PAGE}")
    ctx.out.document({"claims": rows, "record": json.loads(found.model_dump_json())})
    return 0


def _measure(ctx: Context, request: Request, threads: int | None, folder: Path) -> LabRecord:
    order = session.Order(
        models=request.models or (None,),
        wanted=Wanted(trials=registry.trials(), needles=registry.needle_trials(), capture=True),
        out=folder,
        command=" ".join(("tqforge", *ctx.argv)),
        threads=threads or requests.default_threads(),
    )
    with ctx.workspace.lock("tqforge lab"):
        return session.measure(ctx.workspace, ctx.out, request, order)
