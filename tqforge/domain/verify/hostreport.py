"""The report that the Metal host writes: what it dispatched, and what it found in the kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Report = Mapping[str, Any]


def read(path: Path) -> Report:
    """Empty when there is none: a process that died before it could write one."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def dispatched(report: Report) -> int:
    return int(report.get("totals", {}).get("dispatches", 0))


def faults(report: Report) -> str:
    """What was found, the first with its place; empty when nothing new was."""
    found = [one for one in report.get("findings", []) if one.get("severity") == "error"]
    if not found:
        return ""
    first = found[0]
    place = next((f" at {place['file']}:{place['line']}" for place in first.get("places", [])), "")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{first['kind']} in {first['kernel']}{place}{more}"
