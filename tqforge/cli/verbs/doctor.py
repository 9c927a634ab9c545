"""`tqforge doctor`."""

from __future__ import annotations

import typer

from tqforge.cli.app import JsonFlag, context_of, finish


def register(app: typer.Typer) -> None:
    @app.command()
    def doctor(ctx: typer.Context, json: JsonFlag = False) -> None:
        """Check compiler, build tools, architecture, disk and memory; each finding has a remedy."""
        from tqforge.commands import doctor as command

        finish(command.run(context_of(ctx, json=json)))
