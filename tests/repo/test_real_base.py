"""The pinned llama.cpp itself: both sources, the shipped series, its lock."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest
from hostile import make_hostile
from toy import git

from tqforge.adapters.console import Output
from tqforge.adapters.git import Repository
from tqforge.base import source
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.errors import DownloadError
from tqforge.series.checkout import prepare
from tqforge.workspace import Workspace


@pytest.fixture(scope="session")
def archive() -> Path:
    """The pinned archive: TQFORGE_TEST_ARCHIVE, else downloaded once into the cache of the tests."""
    if named := os.environ.get("TQFORGE_TEST_ARCHIVE"):
        return Path(named)
    cache = os.environ.get("TQFORGE_TEST_CACHE") or platformdirs.user_cache_dir("tqforge-tests", appauthor=False)
    context = Context(workspace=Workspace(Path(cache) / "archives"), out=Output(quiet=True))
    with context.workspace.lock("the tests"):
        try:
            return source.obtain_archive(context.workspace, context.out, load_base().archive)
        except DownloadError as error:
            pytest.skip(error.what)


def context(folder: Path) -> Context:
    return Context(workspace=Workspace(folder), out=Output(quiet=True))


@pytest.fixture(scope="module")
def imported(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Context:
    """A workspace with the base and nothing else."""
    ctx = context(tmp_path_factory.mktemp("real"))
    source.ensure_base(ctx.workspace, ctx.out, load_base(), str(archive))
    return ctx


def test_the_series_applies_in_seconds_and_a_second_time_at_once(imported: Context) -> None:
    start = time.monotonic()
    first = prepare(imported.workspace, imported.out, load_base())  # checks the lock of every patch
    applied = time.monotonic()
    second = prepare(imported.workspace, imported.out, load_base())
    again = time.monotonic()
    assert first.patches
    assert second == replace(first, reused=True)
    assert applied - start < 15  # 3 s on a quiet machine
    assert again - applied < 2  # 0.2 s on a quiet machine


def test_git_under_a_hostile_configuration_gives_the_same_commits(
    imported: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = prepare(imported.workspace, imported.out, load_base())
    local = replace(load_base(), commit=one.base_commit, repository=one.path.as_uri())
    git(one.path, "update-ref", "refs/heads/upstream", one.base_commit)
    source.set_base(Repository(one.path), local)
    again = prepare(imported.workspace, imported.out, local)
    make_hostile(tmp_path / "home", monkeypatch)
    two = prepare(context(tmp_path / "git").workspace, context(tmp_path / "git").out, local, source="git")
    assert (two.base_commit, two.head, two.tree) == (again.base_commit, again.head, one.tree)
    assert two.patches == again.patches
