"""What every verb needs: the context of its invocation, its exit code, and `--json`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tqforge.adapters.console import Output
from tqforge.context import Context

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


def context_of(ctx: typer.Context, *, json: bool) -> Context:
    """Return the Context that the root options describe."""
    workspace, quiet = ctx.find_root().obj
    return Context(workspace=workspace, out=Output(json_mode=json, quiet=quiet), argv=tuple(sys.argv[1:]))


def finish(code: int) -> None:
    """Leave the verb with an exit code."""
    raise typer.Exit(code)
