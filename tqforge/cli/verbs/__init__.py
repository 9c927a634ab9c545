"""One module per verb. `register` is the table of all of them."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tqforge.cli.verbs import bench, build, doctor, env, patch, pr, report, run, status, verify, wheel


def register(app: typer.Typer) -> None:
    """Add every verb to the app, once."""
    if app.registered_commands:
        return
    app.command()(build.build)
    app.command()(verify.verify)
    app.command()(bench.bench)
    app.command()(report.report)
    app.command()(status.status)
    app.command()(doctor.doctor)
    app.command(context_settings=run.CONTEXT_SETTINGS)(run.run)
    app.command()(env.env)
    app.command()(wheel.wheel)
    patch.register(app)
    pr.register(app)
    _set_classes(app)


class _NoFlagTypes:
    """Leave out the word `<bool>` that Typer shows beside flags in the help."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class _Command(_NoFlagTypes, TyperCommand):
    pass


class _Group(_NoFlagTypes, TyperGroup):
    pass


def _set_classes(app: typer.Typer) -> None:
    app.info.cls = _Group
    for command in app.registered_commands:
        command.cls = _Command
    for group in app.registered_groups:
        if group.typer_instance:
            _set_classes(group.typer_instance)
