"""Builds below a temporary folder; the real one is kept in a cache and used again as long as its stamp fits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest
from narrow import context, source
from native_library import Native

from tqforge.adapters.llama.api.model import LoadModel
from tqforge.adapters.llama.client import Child
from tqforge.base.models import fetch_model_file
from tqforge.base.pins import load_base, load_models
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.build.cmake_plan import Options
from tqforge.context import Context
from tqforge.errors import DownloadError
from tqforge.series import series
from tqforge.series.lock import SeriesPaths


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TQFORGE_HOME", str(tmp_path / "never"))


@pytest.fixture(scope="session")
def compiler() -> None:
    """Skips, with the reason, where nothing can be compiled."""
    if not (shutil.which("c++") and shutil.which("cc")):
        pytest.skip("deferred: no C++ compiler on PATH")


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where builds outlive a test run: `TQFORGE_TEST_CACHE`, else the user's cache folder."""
    named = os.environ.get("TQFORGE_TEST_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("tqforge-tests", appauthor=False))


@pytest.fixture(scope="session")
def real_context(cache: Path) -> Context:
    return context(cache / "patched")


@pytest.fixture(scope="session")
def real(compiler: None, real_context: Context) -> Built:
    """The patched library: built once, found again by its stamp."""
    if not series.load(SeriesPaths.of("upstream").folder).patches:
        pytest.skip("deferred: the series is empty")
    with real_context.workspace.lock("the tests"):
        try:
            options = Options(targets=("llama",))
            return builder.ensure(
                real_context.workspace, real_context.out, load_base("upstream"), origin=source(), options=options
            )[0]
        except DownloadError as error:
            pytest.skip(f"deferred: {error.what}")


@pytest.fixture(scope="session")
def native(request: pytest.FixtureRequest) -> Native:
    """The patched library with bindings and model. TQFORGE_TEST_LIBRARY, _BINDINGS and _MODEL name others."""
    named = [os.environ.get(f"TQFORGE_TEST_{word}") for word in ("LIBRARY", "BINDINGS", "MODEL")]
    if all(named):
        library, bindings, model = (Path(str(name)) for name in named)
        return Native(library, bindings, model)
    built: Built = request.getfixturevalue("real")
    ctx: Context = request.getfixturevalue("real_context")
    default, pins = load_models()
    with ctx.workspace.lock("the tests"):
        try:
            model = fetch_model_file(ctx.workspace, ctx.out, pins[default])
        except DownloadError as error:
            pytest.skip(f"deferred: {error.what}")
    return Native(built.bin, ctx.workspace.bindings("upstream"), model)


@pytest.fixture(scope="session")
def checkout(request: pytest.FixtureRequest) -> Path:
    """The patched tree. TQFORGE_TEST_TREE names another."""
    named = os.environ.get("TQFORGE_TEST_TREE")
    return Path(named) if named else Path(request.getfixturevalue("real").stamp.checkout)


@pytest.fixture(scope="session")
def child(native: Native, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A child with library and model loaded, shared by tests that do not harm it."""
    log = tmp_path_factory.mktemp("child") / "llama.log"
    with Child(library=native.library, bindings=native.bindings, log=log) as running:
        running.ask(LoadModel(path=native.model, gpu_layers=0), timeout=120)
        yield running
