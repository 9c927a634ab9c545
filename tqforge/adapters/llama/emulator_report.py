"""Read the report of the Metal emulator: the kernels it dispatched and the errors it found in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Report = Mapping[str, Any]


def read(path: Path) -> Report:
    """Read a report. Return an empty mapping if the process died before writing it."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def dispatched(report: Report) -> int:
    """Return the number of dispatches."""
    return int(report.get("totals", {}).get("dispatches", 0))


def errors(report: Report) -> list[dict[str, Any]]:
    """Return the errors in the order found, without those that the suppressions list as known upstream."""
    return [one for one in report.get("findings", []) if one.get("severity") == "error"]


def faults(report: Report, known: int = 0) -> str:
    """Summarize the errors after the first `known` ones, or return an empty string."""
    found = errors(report)[known:]
    if not found:
        return ""
    first = found[0]
    place = next((f" at {place['file']}:{place['line']}" for place in first.get("places", [])), "")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{first['kind']} in {first['kernel']}{place}{more}"
