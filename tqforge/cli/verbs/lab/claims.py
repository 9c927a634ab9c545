"""`tqforge lab claims`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, BindingsOption, LibraryOption, ModelOption, OutOption, ThreadsOption


def claims(  # noqa: PLR0917 - one parameter per option
    ctx: typer.Context,
    model: ModelOption = None,
    recorded: Annotated[
        Path | None,
        typer.Option("--record", help="Judge this recorded run; measure nothing.", metavar="FILE", dir_okay=False),
    ] = None,
    threads: ThreadsOption = None,
    base: BaseOption = None,
    library: LibraryOption = None,
    bindings: BindingsOption = None,
    out: OutOption = None,
    json: JsonFlag = False,
) -> None:
    """Check published claims about TurboQuant on real models. Takes minutes per model."""
    from tqforge.commands.lab import claims as command
    from tqforge.verify.request import Request

    request = Request(base=base, models=tuple(model or ()), library=library, bindings=bindings)
    finish(command.run(context_of(ctx, json=json), request, threads=threads, out=out, recorded=recorded))
