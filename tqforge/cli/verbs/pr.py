"""`tqforge pr`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption
from tqforge.cli.verbs.patch.options import PatchesOption


def register(app: typer.Typer) -> None:
    app.command()(pr)


def pr(
    ctx: typer.Context,
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the pack.", file_okay=False)] = None,
    base: BaseOption = None,
    patches: PatchesOption = None,
    json: JsonFlag = False,
) -> None:
    """Write the pull-request pack: parts, tables from recorded runs, commands, checklist. Submits nothing."""
    from tqforge.commands import pr as command

    finish(command.run(context_of(ctx, json=json), base_name=base, patches=patches, out=out))
