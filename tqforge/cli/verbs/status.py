"""`tqforge status`."""

from __future__ import annotations

import typer

from tqforge.cli.app import JsonFlag, context_of, finish


def register(app: typer.Typer) -> None:
    @app.command()
    def status(ctx: typer.Context, json: JsonFlag = False) -> None:
        """Show the pin, the series and what the workspace holds."""
        from tqforge.commands import status as command

        finish(command.run(context_of(ctx, json=json)))
