"""`tqforge status`."""

from __future__ import annotations

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption


def status(ctx: typer.Context, base: BaseOption = None, json: JsonFlag = False) -> None:
    """Show the base, the series, the checkout, and the cache types that each build accepts."""
    from tqforge.commands import status as command

    finish(command.run(context_of(ctx, json=json), base))
