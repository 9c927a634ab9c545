"""Remember per CPU that native builds crashed, so that later builds are portable."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tqforge.adapters import fs
from tqforge.core.values import Host
from tqforge.workspace import Workspace


def _file(workspace: Workspace) -> Path:
    return workspace.root / "machine.json"


def _key(host: Host) -> str:
    text = json.dumps([host.machine, host.cpu, sorted(host.features)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(workspace: Workspace) -> dict[str, str]:
    try:
        value = json.loads(_file(workspace).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, dict) else {}


def why_portable(workspace: Workspace, host: Host) -> str:
    """Return why builds for this CPU are portable by default; empty if they are native."""
    return _read(workspace).get(_key(host), "")


def remember_portable(workspace: Workspace, host: Host, reason: str) -> None:
    """Make later builds for this CPU portable by default."""
    fs.write_text(_file(workspace), json.dumps({**_read(workspace), _key(host): reason}, indent=2) + "\n")


def forget_portable(workspace: Workspace, host: Host) -> None:
    """Make later builds for this CPU native again."""
    known = _read(workspace)
    if known.pop(_key(host), None) is not None:
        fs.write_text(_file(workspace), json.dumps(known, indent=2) + "\n")
