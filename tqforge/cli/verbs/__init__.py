"""One module per verb (or group of verbs); each has `register(app)`."""

from __future__ import annotations

import typer

from tqforge.cli.verbs import bench, build, doctor, env, patch, pr, report, run, status, verify, wheel

_VERBS = (build, verify, bench, report, status, doctor, run, env, wheel, patch, pr)


def register(app: typer.Typer) -> None:
    """Add every verb to the app, once."""
    if app.registered_commands:
        return
    for verb in _VERBS:
        verb.register(app)
