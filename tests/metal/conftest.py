"""The tree under test, and the host built for it. What is missing defers the tests with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hosttools import Host, Tree, build_host, cache

from tqforge.adapters import toolchain
from tqforge.adapters.console import Output
from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.build.cmake_plan import Options
from tqforge.context import Context
from tqforge.errors import DownloadError
from tqforge.workspace import Workspace


@pytest.fixture(scope="session")
def compiler() -> str:
    """clang++ for the host."""
    found = toolchain.clang_for_metal()
    if found is None:
        why = "the Metal host needs clang 19 (Debian, Ubuntu: apt-get install clang-19 llvm-19)"
        if "clang" in os.environ.get("TQFORGE_TEST_REQUIRE", ""):
            pytest.fail(why)
        pytest.skip(f"deferred: {why}")
    return str(found.path)


@pytest.fixture(scope="session")
def named_tree() -> Tree | None:
    """A tree that the environment names, with the folder of its libraries."""
    root, libraries = os.environ.get("TQFORGE_TEST_TREE"), os.environ.get("TQFORGE_TEST_LIBRARY")
    return Tree(Path(root), Path(libraries)) if root and libraries else None


@pytest.fixture(scope="session")
def built(compiler: str) -> tuple[Context, Built]:
    """The patched library of the workspace that tests/build uses too: built once, found again by its stamp."""
    ctx = Context(workspace=Workspace(cache() / "patched"), out=Output(json_mode=False))
    source = os.environ.get("TQFORGE_TEST_SOURCE", "archive")
    with ctx.workspace.lock("the tests"):
        try:
            return ctx, builder.ensure(
                ctx.workspace, ctx.out, load_base("upstream"), origin=source, options=Options(targets=("llama",))
            )[0]
        except DownloadError as error:
            pytest.skip(f"deferred: {error.what}")


@pytest.fixture(scope="session")
def tree(request: pytest.FixtureRequest, named_tree: Tree | None) -> Tree:
    """The patched llama.cpp. TQFORGE_TEST_TREE and TQFORGE_TEST_LIBRARY name another."""
    if named_tree is not None:
        return named_tree
    done: Built = request.getfixturevalue("built")[1]
    return Tree(Path(done.stamp.checkout), done.bin)


@pytest.fixture(scope="session")
def host(tree: Tree, compiler: str) -> Host:
    """TQFORGE_TEST_HOST names one that was built for that tree by other means."""
    named = os.environ.get("TQFORGE_TEST_HOST")
    return Host(tree, Path(named), Path(named)) if named else build_host(tree, compiler)


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest, named_tree: Tree | None) -> Callable[[str], Path]:
    """A test program of the tree, built if need be."""

    def find(name: str) -> Path:
        if named_tree is not None:
            if not (named_tree.libraries / name).exists():
                pytest.skip(f"deferred: no {name} in {named_tree.libraries}")
            return named_tree.libraries / name
        ctx, done = request.getfixturevalue("built")
        with ctx.workspace.lock("the tests"):
            builder.ensure_targets(ctx.workspace, ctx.out, done, [name])
        return Path(done.bin / name)

    return find
