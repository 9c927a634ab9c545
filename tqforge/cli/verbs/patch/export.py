"""`tqforge patch export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption
from tqforge.cli.verbs.patch.options import PatchesOption
from tqforge.errors import UsageError


def export(
    ctx: typer.Context,
    *,
    base: BaseOption = None,
    patches: PatchesOption = None,
    repository: Annotated[
        Path | None,
        typer.Option("--repository", help="Export from this repository.", exists=True, file_okay=False),
    ] = None,
    revision: Annotated[str, typer.Option("--revision", help="Last commit of the series.")] = "HEAD",
    keep_shifted: Annotated[
        bool, typer.Option("--keep-shifted", help="Do not rewrite patches that only shifted.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Only compare; exit 1 on a difference.")] = False,
    json: JsonFlag = False,
) -> None:
    """Write the commits of the checkout as patch files, series and lock."""
    from tqforge.commands.patch import export as command

    context = context_of(ctx, json=json)
    if check:
        if repository or keep_shifted or revision != "HEAD":
            raise UsageError("--check compares the patch files only: it takes none of the other options.")
        finish(command.check(context, base_name=base, patches=patches))
    finish(
        command.run(
            context,
            base_name=base,
            patches=patches,
            repository=repository,
            revision=revision,
            keep_shifted=keep_shifted,
        )
    )
