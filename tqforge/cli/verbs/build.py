"""`tqforge build`."""

from __future__ import annotations

from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, MetalOption, NativeOption


def build(  # noqa: PLR0917 - one parameter per option
    ctx: typer.Context,
    base: BaseOption = None,
    metal: MetalOption = None,
    source: Annotated[
        str,
        typer.Option(
            help="Where llama.cpp comes from: archive, git, a git URL, or a folder, repository or archive.",
            metavar="SOURCE",
        ),
    ] = "archive",
    native: NativeOption = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="Number of parallel compile jobs.",
            metavar="N",
            show_default="one per core, within the memory",
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Build the patched llama.cpp and check that it decodes with tq3_0. The first build takes minutes."""
    from tqforge.build.cmake_plan import Options
    from tqforge.commands import build as command

    options = Options(metal=metal, native=native, jobs=jobs)
    finish(command.run(context_of(ctx, json=json), base=base, source=source, options=options))
