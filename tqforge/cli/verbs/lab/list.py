"""`tqforge lab list`."""

from __future__ import annotations

import typer

from tqforge.cli.context import JsonFlag, context_of, finish


def list_(ctx: typer.Context, *, json: JsonFlag = False) -> None:
    """List the codecs of the lab."""
    from tqforge.commands.lab import list as command

    finish(command.run(context_of(ctx, json=json)))
