"""`tqforge build`."""

from __future__ import annotations

from typing import Annotated

import typer

from tqforge.cli.app import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, MetalOption, NativeOption


def register(app: typer.Typer) -> None:
    @app.command()
    def build(  # noqa: PLR0917 - one parameter per option
        ctx: typer.Context,
        base: BaseOption = None,
        metal: MetalOption = None,
        source: Annotated[
            str, typer.Option(help="archive, git, an address, or the path of a llama.cpp you have.", metavar="SOURCE")
        ] = "archive",
        native: NativeOption = None,
        jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compilers at work at once.")] = None,
        json: JsonFlag = False,
    ) -> None:
        """Get the base, apply the series, compile, load the library and decode with it."""
        from tqforge.build.cmake_plan import Options
        from tqforge.commands import build as command

        options = Options(metal=metal, native=native, jobs=jobs)
        finish(command.run(context_of(ctx, json=json), base=base, source=source, options=options))
