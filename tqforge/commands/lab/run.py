"""`tqforge lab run`: KL divergence of codecs on a model."""

from __future__ import annotations

import json
from pathlib import Path

from tqforge.context import Context
from tqforge.lab import page, session
from tqforge.lab.codecs.registry import codec
from tqforge.lab.record import LabRecord
from tqforge.lab.request import Trial
from tqforge.lab.run import Wanted
from tqforge.verify import request as requests
from tqforge.verify.request import Request


def run(
    ctx: Context, trials: tuple[str, ...], request: Request, *, threads: int | None = None, out: Path | None = None
) -> int:
    """Measure the trials on every model and print one table per model."""
    wanted = Wanted(trials=tuple(checked(text) for text in trials))
    show(ctx, measure(ctx, wanted, request, threads=threads, out=out))
    return 0


def checked(text: str) -> Trial:
    """Return a trial whose codecs exist. Raises CacheTypeError for others."""
    trial = Trial.parse(text)
    if not trial.real:
        codec(trial.k)
        codec(trial.v)
    return trial


def measure(ctx: Context, wanted: Wanted, request: Request, *, threads: int | None, out: Path | None) -> LabRecord:
    order = session.Order(
        models=request.models or (None,),
        wanted=wanted,
        out=(out or ctx.workspace.runs / "lab").absolute(),
        command=" ".join(("tqforge", *ctx.argv)),
        threads=threads or requests.default_threads(),
    )
    with ctx.workspace.lock("tqforge lab"):
        return session.measure(ctx.workspace, ctx.out, request, order)


def show(ctx: Context, record: LabRecord) -> None:
    for model in record.models:
        ctx.out.table(page.codec_rows(model), head=page.CODEC_HEAD, title=model.name)
    ctx.out.document(json.loads(record.model_dump_json()))
