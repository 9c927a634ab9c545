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


def errors(report: Report) -> list[dict[str, Any]]:
    """What is wrong with the kernels, in the order in which it was found; what is known of upstream's is not."""
    return [one for one in report.get("findings", []) if one.get("severity") == "error"]


def faults(report: Report, known: int = 0) -> str:
    """What was found after the first `known` errors, the first with its place; empty when nothing was."""
    found = errors(report)[known:]
    if not found:
        return ""
    first = found[0]
    place = next((f" at {place['file']}:{place['line']}" for place in first.get("places", [])), "")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{first['kind']} in {first['kernel']}{place}{more}"
