"""`tqforge lab ...`: one module per sub-verb, each with one function."""

from __future__ import annotations

import typer

from tqforge.cli.verbs.lab.claims import claims
from tqforge.cli.verbs.lab.list import list_
from tqforge.cli.verbs.lab.run import run


def register(app: typer.Typer) -> None:
    """Add the group `lab` to the app."""
    group = typer.Typer(help="Try K/V codecs in a running model without compiling them.", no_args_is_help=True)
    group.command("list")(list_)
    group.command()(run)
    group.command()(claims)
    app.add_typer(group, name="lab")
