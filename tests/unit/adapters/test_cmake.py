"""What CMake's own cache says about a build folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tqforge.adapters.cmake import BuildTree
from tqforge.core.values import Tools


@pytest.fixture
def tree(tmp_path: Path) -> BuildTree:
    tools = Tools.__new__(Tools)  # nothing is run
    return BuildTree(source=tmp_path / "source", folder=tmp_path / "build", tools=tools, environment={})


def cache(tree: BuildTree, *lines: str) -> None:
    tree.folder.mkdir()
    (tree.folder / "CMakeCache.txt").write_text("\n".join(("# This is the CMakeCache file.", *lines, "")))


def test_an_empty_folder_is_of_no_source(tree: BuildTree) -> None:
    assert not tree.is_of_another_source
    assert not tree.lost_its_cmake


@pytest.mark.parametrize(("source", "another"), [("source", False), ("elsewhere", True)])
def test_sources_that_moved_are_noticed(tree: BuildTree, source: str, another: bool) -> None:
    cache(tree, f"CMAKE_HOME_DIRECTORY:INTERNAL={tree.folder.parent / source}")
    assert tree.is_of_another_source is another


@pytest.mark.parametrize("there", [True, False])
def test_a_cmake_that_is_gone_is_noticed(tree: BuildTree, there: bool) -> None:
    program = tree.folder.parent / "cmake"
    if there:
        program.touch()
    cache(tree, f"CMAKE_COMMAND:INTERNAL={program}")
    assert tree.lost_its_cmake is not there


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("CMAKE_PROJECT_llama.cpp_INCLUDE:UNINITIALIZED=/new/inject.cmake", True),
        ("CMAKE_PROJECT_llama.cpp_INCLUDE:UNINITIALIZED=/old/inject.cmake", False),
        ("CMAKE_PROJECT_llama_cpp_INCLUDE:UNINITIALIZED=/new/inject.cmake", False),
        ("", False),
    ],
)
def test_an_argument_is_compared_with_the_cache(tree: BuildTree, line: str, same: bool) -> None:
    """A tqforge in another virtual environment has its native tests in another place."""
    cache(tree, line)
    assert tree.is_configured_with("-DCMAKE_PROJECT_llama.cpp_INCLUDE=/new/inject.cmake") is same
