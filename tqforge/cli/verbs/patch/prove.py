"""`tqforge patch prove`."""

from __future__ import annotations

from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption
from tqforge.cli.verbs.patch.options import PatchesOption


def prove(
    ctx: typer.Context,
    *,
    patch: Annotated[list[str] | None, typer.Option("--patch", help="Only this patch; may be repeated.")] = None,
    prefixes: Annotated[bool, typer.Option("--prefixes/--no-prefixes", help="Build and test every prefix.")] = True,
    guards: Annotated[bool, typer.Option("--guards/--no-guards", help="Run the guards without each patch.")] = True,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Number of parallel compile jobs.")] = None,
    base: BaseOption = None,
    patches: PatchesOption = None,
    json: JsonFlag = False,
) -> None:
    """Build every prefix of the series and check that each patch's guard test fails without it.

    Resumes an interrupted run. Compiles llama.cpp: minutes for one patch, hours for a whole series.
    """
    from tqforge.commands.patch import prove as command
    from tqforge.proof.prove import Selection

    selection = Selection(patches=patch or (), prefixes=prefixes, guards=guards, jobs=jobs)
    finish(command.run(context_of(ctx, json=json), selection, base_name=base, patches=patches))
