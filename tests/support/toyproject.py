"""A project that looks to tqforge like llama.cpp and compiles in a second; and a driver to build it in a process."""

from __future__ import annotations

import sys
from pathlib import Path

from tqforge.adapters.console import Output
from tqforge.base.pins import load_base
from tqforge.build import builder, smoke_test
from tqforge.build.builder import Built
from tqforge.build.cmake_plan import TARGETS, Options
from tqforge.build.stamp import LoadCheck
from tqforge.context import Context
from tqforge.core.values import Checkout
from tqforge.workspace import Workspace

_PROGRAMS = " ".join(name for name in TARGETS if name != "llama")
CMAKE = """cmake_minimum_required(VERSION 3.14)
project(toy C CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set_property(DIRECTORY PROPERTY COMPILE_DEFINITIONS COMMIT="${LLAMA_BUILD_COMMIT}")
add_library(llama SHARED llama.c)
foreach(program PROGRAMS test-toy)
    add_executable(${program} main.cpp)
endforeach()
""".replace("PROGRAMS", _PROGRAMS)
LIBRARY = "int toy(void) { return 1; }\n"
PROGRAM = "#include <cstdio>\nint main() { std::puts(COMMIT); return 0; }\n"


def write(folder: Path) -> None:
    """The sources."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("CMakeLists.txt", CMAKE), ("llama.c", LIBRARY), ("main.cpp", PROGRAM)):
        (folder / name).write_text(text, encoding="ascii")


def prepared(folder: Path, tree: str = "a" * 40) -> Checkout:
    """The toy as a prepared checkout."""
    return Checkout(
        base=load_base("upstream"),
        path=folder,
        base_commit="c" * 40,
        head="d" * 40,
        tree=tree,
        series_sha256="5" * 64,
        patches=(),
        reused=True,
    )


def context(workspace: Path) -> Context:
    return Context(workspace=Workspace(workspace), out=Output())


def build(workspace: Path, folder: Path, options: Options | None = None, tree: str = "a" * 40) -> Built:
    """Build the toy; its load check is taken as passed."""
    (workspace / "bindings" / "upstream" / "llama_cpp").mkdir(parents=True, exist_ok=True)
    made = context(workspace)
    chosen = options or Options()
    return builder.build(made.workspace, made.out, prepared(folder, tree), chosen, lambda: Path("no-model"))


def ensure_targets(workspace: Path, built: Built, targets: tuple[str, ...]) -> None:
    made = context(workspace)
    builder.ensure_targets(made.workspace, made.out, built, targets)


if __name__ == "__main__":
    smoke_test.run = lambda *_: LoadCheck(status="passed")
    build(Path(sys.argv[1]), Path(sys.argv[2]))
