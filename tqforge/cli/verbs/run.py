"""`tqforge run`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tqforge.cli.context import context_of, finish
from tqforge.cli.options import BaseOption, MetalOption

#: Everything behind the program's name belongs to the program.
CONTEXT_SETTINGS: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def run(
    ctx: typer.Context,
    program: Annotated[
        str, typer.Argument(help="llama-server, llama-cli, ..., or another program.", metavar="PROGRAM")
    ],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the program.", metavar="ARGS...")] = None,
    base: BaseOption = None,
    metal: MetalOption = None,
) -> None:
    """Run a program of the patched build: tqforge run llama-server -m model.gguf -ctk q8_0 -ctv tq3_0"""
    from tqforge.commands import run as command

    finish(command.run(context_of(ctx, json=False), program, arguments or [], base=base, metal=metal))
