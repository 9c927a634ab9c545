"""`tqforge doctor`."""

from __future__ import annotations

import typer

from tqforge.cli.context import JsonFlag, context_of, finish


def doctor(ctx: typer.Context, json: JsonFlag = False) -> None:
    """Check compilers, build tools, disk space and memory, and say how to fix what is missing."""
    from tqforge.commands import doctor as command

    finish(command.run(context_of(ctx, json=json)))
