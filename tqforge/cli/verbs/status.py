"""`tqforge status`."""

from __future__ import annotations

import typer

from tqforge.cli.app import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption


def register(app: typer.Typer) -> None:
    @app.command()
    def status(ctx: typer.Context, base: BaseOption = None, json: JsonFlag = False) -> None:
        """Show the pin, the series, the trees, and the cache types the builds really accept."""
        from tqforge.commands import status as command

        finish(command.run(context_of(ctx, json=json), base))
