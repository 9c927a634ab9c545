"""`tqforge patch lint`."""

from __future__ import annotations

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption
from tqforge.cli.verbs.patch.options import PatchesOption


def lint(ctx: typer.Context, *, base: BaseOption = None, patches: PatchesOption = None, json: JsonFlag = False) -> None:
    """Check the rules of the series: trailers, type ids, kernels, layout, scope. Exit 1 on a finding."""
    from tqforge.commands.patch import lint as command

    finish(command.run(context_of(ctx, json=json), base_name=base, patches=patches))
