"""The tree under test, and the host built for it. What is missing defers the tests with the reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hosttools import Host, Tree, build_host, clang

from tqforge.workspace import Workspace


def _built_tree() -> Tree | None:
    named = os.environ.get("TQFORGE_LLAMA_DIR"), os.environ.get("TQFORGE_LLAMA_LIB_DIR")
    if named[0] and named[1]:
        return Tree(Path(named[0]).absolute(), Path(named[1]).absolute())
    workspace = Workspace.locate()
    for library in sorted((workspace.root / "builds").glob("*/*/bin/libggml-base.so")):
        base = library.parents[2].name
        if workspace.checkout(base).is_dir():
            return Tree(workspace.checkout(base), library.parent)
    return None


@pytest.fixture(scope="session")
def compiler() -> str:
    found = clang()
    if found is None:
        pytest.skip(
            "deferred: the Metal host needs clang 19 or newer (Debian, Ubuntu: apt-get install clang-19 llvm-19)"
        )
    return found


@pytest.fixture(scope="session")
def tree() -> Tree:
    found = _built_tree()
    if found is None:
        pytest.skip(
            "deferred: no built llama.cpp; run `tqforge build`, or set TQFORGE_LLAMA_DIR and TQFORGE_LLAMA_LIB_DIR"
        )
    return found


@pytest.fixture(scope="session")
def host(tree: Tree, compiler: str) -> Host:
    return build_host(tree, compiler)
