"""`tqforge patch ...`: one module per sub-verb, each with one function."""

from __future__ import annotations

import typer

from tqforge.cli.verbs.patch.apply import apply
from tqforge.cli.verbs.patch.drift import drift
from tqforge.cli.verbs.patch.export import export
from tqforge.cli.verbs.patch.lint import lint
from tqforge.cli.verbs.patch.new import new
from tqforge.cli.verbs.patch.path import path
from tqforge.cli.verbs.patch.prove import prove


def register(app: typer.Typer) -> None:
    """Add the group `patch` to the app."""
    group = typer.Typer(help="Apply, export and check the patch series.", no_args_is_help=True)
    for verb in (apply, path, new, export, lint, drift, prove):
        group.command()(verb)
    app.add_typer(group, name="patch")
