"""`tqforge report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.app import JsonFlag, context_of, finish


def register(app: typer.Typer) -> None:
    @app.command()
    def report(
        ctx: typer.Context,
        run: Annotated[
            Path | None, typer.Argument(help="A report.json, or the folder of a run (the newest run without).")
        ] = None,
        html: Annotated[
            Path | None, typer.Option("--html", help="Write the page to this file.", dir_okay=False)
        ] = None,
        json: JsonFlag = False,
    ) -> None:
        """Show a recorded run again; nothing is measured."""
        from tqforge.commands import report as command

        finish(command.run(context_of(ctx, json=json), run, html))
