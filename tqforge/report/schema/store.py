"""Runs that were recorded: found in the workspace, read back, shown again."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from tqforge.errors import ConfigError, UsageError
from tqforge.report.schema.report import Report

NAME = "report.json"


def newest(runs: Path) -> Path:
    """The `report.json` of the newest run in the workspace."""
    found = sorted(runs.glob(f"*/{NAME}"), key=lambda path: (path.parent.name, path.stat().st_mtime))
    if not found:
        raise UsageError(
            "No run is recorded yet.", where=str(runs), remedy="Run `tqforge verify`, or name a report.json."
        )
    return found[-1]


def load(path: Path) -> Report:
    """Read a `report.json`; a folder stands for the one in it."""
    file = path / NAME if path.is_dir() else path
    try:
        return Report.model_validate_json(file.read_bytes())
    except OSError as error:
        raise UsageError("The recorded run cannot be read.", where=f"{file}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in first["loc"][-1:])
        what = f"{file.name} is not a report that this tqforge reads ({place}{first['msg']})."
        raise ConfigError(
            what, where=str(file), remedy="Read it with the version that wrote it, or run `tqforge verify` again."
        ) from error
