"""`tqforge env`."""

from __future__ import annotations

import typer

from tqforge.cli.app import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, MetalOption


def register(app: typer.Typer) -> None:
    @app.command()
    def env(ctx: typer.Context, base: BaseOption = None, metal: MetalOption = None, json: JsonFlag = False) -> None:
        """Print what a shell must export to use the patched build."""
        from tqforge.commands import env as command

        finish(command.run(context_of(ctx, json=json), base=base, metal=metal))
