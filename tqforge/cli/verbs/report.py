"""`tqforge report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish


def report(
    ctx: typer.Context,
    run: Annotated[
        Path | None,
        typer.Argument(help="A report.json, or the folder that holds it.", show_default="the newest run"),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write the HTML report to this file.", metavar="FILE", dir_okay=False),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show the report of an earlier run. Measures nothing."""
    from tqforge.commands import report as command

    finish(command.run(context_of(ctx, json=json), run, html))
