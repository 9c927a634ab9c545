"""The folder for downloads, checkouts, builds, models and runs.

downloads/<sha256>/<file>    verified archives and wheels
models/<sha256>/<file>       verified GGUF files
bindings/<base>/llama_cpp    the Python bindings that belong to a base
git/<base>/                  one repository per base: the imported base and the series as commits
builds/<base>/<preset>/      build tree, build log and stamp
runs/<time>/                 report.json, report.html and the logs of the children
lock                         held by every command that writes
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tqforge.adapters import fs

ENV_HOME = "TQFORGE_HOME"


@dataclass(frozen=True)
class Workspace:
    """The paths of one workspace."""

    root: Path

    @classmethod
    def locate(cls, chosen: Path | None = None) -> Workspace:
        """Return the workspace of `--workspace`, else `TQFORGE_HOME`, else the user's cache folder."""
        if chosen is None:
            named = os.environ.get(ENV_HOME)
            chosen = Path(named) if named else Path(platformdirs.user_cache_dir("tqforge", appauthor=False))
        return cls(chosen.expanduser().absolute())

    @property
    def downloads(self) -> Path:
        return self.root / "downloads"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def bindings(self, base: str) -> Path:
        return self.root / "bindings" / base

    def checkout(self, base: str) -> Path:
        return self.root / "git" / base

    def build(self, base: str, preset: str) -> Path:
        return self.root / "builds" / base / preset

    @contextmanager
    def lock(self, purpose: str) -> Iterator[None]:
        """Hold the workspace for writing. Raises LockedError at once when another tqforge holds it."""
        with fs.locked(self.root / "lock", purpose):
            yield
