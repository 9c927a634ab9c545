"""`tqforge lab run`."""

from __future__ import annotations

from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, BindingsOption, LibraryOption, ModelOption, OutOption, ThreadsOption


def run(  # noqa: PLR0917 - one parameter per option
    ctx: typer.Context,
    trials: Annotated[
        list[str], typer.Argument(help="K/V codecs, e.g. lm4-head/lm3-block. Options: +cal, +firstN, +recentN, +real.")
    ],
    model: ModelOption = None,
    threads: ThreadsOption = None,
    base: BaseOption = None,
    library: LibraryOption = None,
    bindings: BindingsOption = None,
    out: OutOption = None,
    json: JsonFlag = False,
) -> None:
    """Measure the KL divergence of codecs from f16. Takes about 10 seconds per codec on a small model."""
    from tqforge.commands.lab import run as command
    from tqforge.verify.request import Request

    request = Request(base=base, models=tuple(model or ()), library=library, bindings=bindings)
    finish(command.run(context_of(ctx, json=json), tuple(trials), request, threads=threads, out=out))
