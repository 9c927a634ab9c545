"""One module per verb (or group of verbs); each has `register(app)`."""

from __future__ import annotations

import typer

from tqforge.cli.verbs import patch, status

_VERBS = (patch, status)


def register(app: typer.Typer) -> None:
    """Add every verb to the app, once."""
    if app.registered_commands:
        return
    for verb in _VERBS:
        verb.register(app)
