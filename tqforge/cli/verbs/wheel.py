"""`tqforge wheel`."""

from __future__ import annotations

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, MetalOption, NativeOption, OutOption


def wheel(  # noqa: PLR0917 - one parameter per option
    ctx: typer.Context,
    base: BaseOption = None,
    metal: MetalOption = None,
    native: NativeOption = None,
    out: OutOption = None,
    json: JsonFlag = False,
) -> None:
    """Make a llama-cpp-python wheel with the patched libraries. Its version names the source tree."""
    from tqforge.build.cmake_plan import Options
    from tqforge.commands import wheel as command

    options = Options(metal=metal, native=native)
    finish(command.run(context_of(ctx, json=json), base=base, options=options, out=out))
