"""Provide the tree under test and the emulator built for it, or skip with the reason why something is missing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from emulator_tools import Emulator, Tree, build_emulator, cache

from tqforge.adapters import toolchain
from tqforge.adapters.console import Output
from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.build.cmake_plan import Options
from tqforge.context import Context
from tqforge.core import emulator as names
from tqforge.errors import DownloadError
from tqforge.workspace import Workspace


@pytest.fixture(scope="session")
def compiler() -> str:
    """Return the path of the clang++ that compiles the emulator."""
    found = toolchain.clang_for_metal()
    if found is None:
        why = f"the {names.TITLE} needs {names.CLANG} (Debian, Ubuntu: {names.INSTALL})"
        if "clang" in os.environ.get("TQFORGE_TEST_REQUIRE", ""):
            pytest.fail(why)
        pytest.skip(f"{why}")
    return str(found.path)


@pytest.fixture(scope="session")
def named_tree() -> Tree | None:
    """Return the tree and libraries that the environment names, if any."""
    root, libraries = os.environ.get("TQFORGE_TEST_TREE"), os.environ.get("TQFORGE_TEST_LIBRARY")
    return Tree(Path(root), Path(libraries)) if root and libraries else None


@pytest.fixture(scope="session")
def built(compiler: str) -> tuple[Context, Built]:
    """Build the patched library in the workspace shared with tests/build, or reuse it."""
    ctx = Context(workspace=Workspace(cache() / "patched"), out=Output(json_mode=False))
    source = os.environ.get("TQFORGE_TEST_SOURCE", "archive")
    with ctx.workspace.lock("the tests"):
        try:
            return ctx, builder.ensure(
                ctx.workspace, ctx.out, load_base("upstream"), origin=source, options=Options(targets=("llama",))
            )[0]
        except DownloadError as error:
            pytest.skip(f"{error.what}")


@pytest.fixture(scope="session")
def tree(request: pytest.FixtureRequest, named_tree: Tree | None) -> Tree:
    """Return the patched llama.cpp, or the tree named by TQFORGE_TEST_TREE and TQFORGE_TEST_LIBRARY."""
    if named_tree is not None:
        return named_tree
    done: Built = request.getfixturevalue("built")[1]
    return Tree(Path(done.stamp.checkout), done.bin)


@pytest.fixture(scope="session")
def emulator(tree: Tree, compiler: str) -> Emulator:
    """Build the emulator, or use the folder named by TQFORGE_TEST_EMULATOR, which must belong to the same tree."""
    named = os.environ.get("TQFORGE_TEST_EMULATOR")
    return Emulator(tree, Path(named), Path(named)) if named else build_emulator(tree, compiler)


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest, named_tree: Tree | None) -> Callable[[str], Path]:
    """Return a function that builds a test program of the tree if needed and returns its path."""

    def find(name: str) -> Path:
        if named_tree is not None:
            if not (named_tree.libraries / name).exists():
                pytest.skip(f"no {name} in {named_tree.libraries}")
            return named_tree.libraries / name
        ctx, done = request.getfixturevalue("built")
        with ctx.workspace.lock("the tests"):
            builder.ensure_targets(ctx.workspace, ctx.out, done, [name])
        return Path(done.bin / name)

    return find
