"""`tqforge run`."""

from __future__ import annotations

from typing import Annotated

import typer

from tqforge.cli.app import context_of, finish
from tqforge.cli.options import BaseOption, MetalOption


def register(app: typer.Typer) -> None:
    @app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
    def run(
        ctx: typer.Context,
        program: Annotated[
            str, typer.Argument(help="llama-server, llama-cli, llama-bench, ... or a program of yours.")
        ],
        arguments: Annotated[list[str] | None, typer.Argument(help="Passed on as they are.", metavar="ARGS...")] = None,
        base: BaseOption = None,
        metal: MetalOption = None,
    ) -> None:
        """Run a program of the patched build: tqforge run -- llama-server -m model.gguf -ctk q8_0 -ctv tq3_0"""
        from tqforge.commands import run as command

        finish(command.run(context_of(ctx, json=False), program, arguments or [], base=base, metal=metal))
