"""`tqforge patch path`."""

from __future__ import annotations

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption


def path(ctx: typer.Context, *, base: BaseOption = None, json: JsonFlag = False) -> None:
    """Print the path of the checkout, for `cd "$(tqforge patch path)"`."""
    from tqforge.commands.patch import path as command

    finish(command.run(context_of(ctx, json=json), base_name=base))
