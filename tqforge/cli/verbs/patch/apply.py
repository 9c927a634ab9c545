"""`tqforge patch apply`."""

from __future__ import annotations

from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption
from tqforge.cli.verbs.patch.options import PatchesOption
from tqforge.errors import UsageError


def apply(
    ctx: typer.Context,
    *,
    base: BaseOption = None,
    source: Annotated[
        str, typer.Option("--source", help="archive, git, a URL, or a local folder, repository or archive.")
    ] = "archive",
    patches: PatchesOption = None,
    discard: Annotated[bool, typer.Option("--discard", help="Discard your changes in the checkout.")] = False,
    write_lock: Annotated[bool, typer.Option("--write-lock", help="Record the result in the lock.")] = False,
    continue_: Annotated[bool, typer.Option("--continue", help="Continue after resolving a conflict.")] = False,
    skip: Annotated[bool, typer.Option("--skip", help="Drop the conflicting patch and continue.")] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Stop resolving; nothing is changed.")] = False,
    json: JsonFlag = False,
) -> None:
    """Check out the base and apply the series, one commit per patch."""
    from tqforge.commands.patch import apply as command

    if continue_ + skip + abort > 1:
        raise UsageError("--continue, --skip and --abort are mutually exclusive.")
    context = context_of(ctx, json=json)
    if abort:
        finish(command.abort(context, base_name=base))
    if continue_ or skip:
        finish(command.continue_(context, base_name=base, patches=patches, skip=skip))
    finish(command.run(context, base_name=base, source=source, patches=patches, discard=discard, write_lock=write_lock))
