"""No process, no network, no home folder."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest


def _refuse(what: str) -> Any:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"a unit test tried to {what}: {args!r}")

    return refused


@pytest.fixture(autouse=True)
def _no_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess.Popen, "__init__", _refuse("start a process"))
    monkeypatch.setattr(socket.socket, "connect", _refuse("open a connection"))
    monkeypatch.setenv("HOME", str(tmp_path / "no-home"))
    monkeypatch.setenv("TQFORGE_HOME", str(tmp_path / "workspace"))
    monkeypatch.setattr(Path, "home", _refuse("read the home folder"))
