"""Builds below a temporary folder; the real one is kept in a cache and used again as long as its stamp fits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TQFORGE_HOME", str(tmp_path / "never"))
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture
def compiler() -> None:
    """Skips, with the reason, where nothing can be compiled."""
    if not (shutil.which("c++") and shutil.which("cc")):
        pytest.skip("deferred: no C++ compiler on PATH")
