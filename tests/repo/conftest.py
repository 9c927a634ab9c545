"""Real git on toy repositories below a temporary folder; the user's home and workspace are never touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import Toy


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TQFORGE_HOME", str(tmp_path / "never"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path / "toy")
