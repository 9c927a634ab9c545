"""`tqforge wheel`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.app import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, MetalOption, NativeOption


def register(app: typer.Typer) -> None:
    @app.command()
    def wheel(  # noqa: PLR0917 - one parameter per option
        ctx: typer.Context,
        base: BaseOption = None,
        metal: MetalOption = None,
        native: NativeOption = None,
        out: Annotated[
            Path | None, typer.Option("--out", help="Folder for the wheel (in the workspace without).", file_okay=False)
        ] = None,
        json: JsonFlag = False,
    ) -> None:
        """Make a llama-cpp-python wheel that contains the patched library; its version names the tree."""
        from tqforge.build.cmake_plan import Options
        from tqforge.commands import wheel as command

        options = Options(metal=metal, native=native)
        finish(command.run(context_of(ctx, json=json), base=base, options=options, out=out))
