"""Recorded runs: find them in the workspace and read them back."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from tqforge.errors import ConfigError, UsageError
from tqforge.report.schema.report import SCHEMA_VERSION, Report

NAME = "report.json"
_REMEDY = "Read it with the version that wrote it, or run `tqforge verify` again."


class _Version(BaseModel):
    schema_version: int


def newest(runs: Path) -> Path:
    """Return the `report.json` of the newest run in the workspace."""
    found = sorted(runs.glob(f"*/{NAME}"), key=lambda path: (path.parent.name, path.stat().st_mtime))
    if not found:
        raise UsageError(
            "No run is recorded yet.", where=str(runs), remedy="Run `tqforge verify`, or name a report.json."
        )
    return found[-1]


def load(path: Path) -> Report:
    """Read a `report.json`, or the one in a folder. Raises ConfigError for another schema version or bad content."""
    file = path / NAME if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError("The recorded run cannot be read.", where=f"{file}: {error.strerror}") from error
    try:
        version = _Version.model_validate_json(data).schema_version
        if version != SCHEMA_VERSION:
            what = f"{file.name} has schema version {version}; this tqforge reads version {SCHEMA_VERSION}."
            raise ConfigError(what, where=str(file), remedy=_REMEDY)
        return Report.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in first["loc"][-1:])
        what = f"{file.name} is not a valid report ({place}{first['msg']})."
        raise ConfigError(what, where=str(file), remedy=_REMEDY) from error
