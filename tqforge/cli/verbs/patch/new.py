"""`tqforge patch new`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption
from tqforge.errors import UsageError


def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the patch, without .patch.")],
    *,
    subject: Annotated[str | None, typer.Option("--subject", help="Subject line, as `area : what`.")] = None,
    body: Annotated[str, typer.Option("--body", help="A few factual lines.")] = "",
    why: Annotated[str | None, typer.Option("--why", help="The defect or need in one sentence.")] = None,
    status: Annotated[str, typer.Option("--status", help="Upstream-Status.")] = "Pending",
    guard: Annotated[str | None, typer.Option("--guard", help="The test that fails without the patch.")] = None,
    base: BaseOption = None,
    json: JsonFlag = False,
) -> None:
    """Create a patch from the changes in the checkout, prompting for missing trailers."""
    from tqforge.commands.patch import new as command

    values = {
        "Why": _ask("--why", why, "Why (the defect or need in one sentence)"),
        "Upstream-Status": status,
        "Guard": _ask("--guard", guard, "Guard (the test that fails without the patch)"),
    }
    first = _ask("--subject", subject, "Subject (area : what)")
    context = context_of(ctx, json=json)
    finish(command.run(context, name, subject=first, body=body, values=values, base_name=base))


def _ask(option: str, value: str | None, question: str) -> str:
    """Return the value of an option; prompt for it in a terminal."""
    if value is not None:
        return value
    if not sys.stdin.isatty():
        raise UsageError(f"{option} is missing.", remedy=f"Pass {option}, or run the command in a terminal.")
    return str(typer.prompt(question, err=True))
