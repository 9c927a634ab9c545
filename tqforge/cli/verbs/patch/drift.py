"""`tqforge patch drift`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption
from tqforge.cli.verbs.patch.options import PatchesOption


def drift(
    ctx: typer.Context,
    *,
    to: Annotated[
        list[str],
        typer.Option("--to", help="Archive version, folder, full commit id or URL#REVISION; may be repeated."),
    ],
    base: BaseOption = None,
    patches: PatchesOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for drift.md and drift.json.")] = None,
    json: JsonFlag = False,
) -> None:
    """Check whether the series still applies to other llama.cpp versions."""
    from tqforge.commands.patch import drift as command

    finish(command.run(context_of(ctx, json=json), to, base_name=base, patches=patches, out=out))
