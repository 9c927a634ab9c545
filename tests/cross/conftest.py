"""The patched ggml for aarch64, compiled and run here. What is missing defers the tests with the reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from crosstools import ARCHITECTURES, Machine, Tools, build, cache, find_tools

from tqforge.adapters.console import Output
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.errors import DownloadError
from tqforge.series import checkout
from tqforge.workspace import Workspace


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Compiler and emulator."""
    tools, missing = find_tools()
    if missing:
        packages = "gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user"
        pytest.skip(f"no {', no '.join(missing)} on PATH (Debian, Ubuntu: apt-get install {packages})")
    return tools


@pytest.fixture(scope="session")
def tree(tools: Tools) -> Path:
    """The patched sources of the workspace that tests/build uses too. TQFORGE_TEST_TREE names others."""
    if named := os.environ.get("TQFORGE_TEST_TREE"):
        return Path(named)
    ctx = Context(workspace=Workspace(cache() / "patched"), out=Output(json_mode=False))
    source = os.environ.get("TQFORGE_TEST_SOURCE", "archive")
    with ctx.workspace.lock("the tests"):
        try:
            return checkout.prepare(ctx.workspace, ctx.out, load_base("upstream"), source=source).path
        except DownloadError as error:
            pytest.skip(f"{error.what}")


@pytest.fixture(scope="session", params=sorted(ARCHITECTURES))
def machine(request: pytest.FixtureRequest, tree: Path, tools: Tools) -> Machine:
    """The programs for one architecture and the processor that runs them."""
    return build(tree, tools, request.param)
