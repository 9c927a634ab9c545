"""Options that several `tqforge patch` verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PatchesOption = Annotated[
    Path | None,
    typer.Option("--patches", help="Use the series in this folder instead of tqforge's.", exists=True, file_okay=False),
]
