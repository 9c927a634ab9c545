"""`tqforge env`."""

from __future__ import annotations

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, MetalOption


def env(ctx: typer.Context, base: BaseOption = None, metal: MetalOption = None, json: JsonFlag = False) -> None:
    """Print the environment variables that make a shell use the patched build."""
    from tqforge.commands import env as command

    finish(command.run(context_of(ctx, json=json), base=base, metal=metal))
