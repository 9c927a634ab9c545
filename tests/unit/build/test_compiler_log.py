from __future__ import annotations

from pathlib import Path

import pytest

from tqforge.build.compiler_log import BuildFailure, Step, first_error, step

LOGS = Path(__file__).parents[2] / "data" / "buildlogs"


@pytest.mark.parametrize(
    ("name", "what", "where", "cause"),
    [
        ("compiler-error", "unknown type name 'block_tq3_0'", "/src/llama.cpp/ggml/src/bad.c:3", "source"),
        ("missing-header", "nothere.h: No such file or directory", "/src/llama.cpp/ggml/src/ggml.c:1", "source"),
        ("linker-error", "undefined reference to `missing(int)'", "app", "source"),
        (
            "clang-linker-macos",
            "Undefined symbols for architecture arm64:",
            "bin/libggml-metal.0.dylib",
            "source",
        ),
        (
            "cmake-error",
            "Could not find FOUNDATION_LIBRARY using the following names: Foundation",
            "ggml/src/ggml-metal/CMakeLists.txt:1",
            "source",
        ),
        ("broken-compiler", "The compiler cannot compile and link a simple program.", "", "toolchain"),
        ("no-compiler", "CMake found no C compiler.", "", "toolchain"),
        ("disk-full", "No space left on device", "ggml/src/CMakeFiles/ggml-base.dir/ggml.c.o", "disk"),
        (
            "out-of-memory",
            "Killed signal terminated program cc1plus",
            "tools/server/CMakeFiles/server-context.dir/server-task.cpp.o",
            "memory",
        ),
    ],
)
def test_first_error(name: str, what: str, where: str, cause: str) -> None:
    failure = first_error((LOGS / f"{name}.log").read_text(encoding="utf-8"))
    assert what in failure.what.splitlines()[0]
    assert (failure.where, failure.cause) == (where, cause)


def test_every_log_is_expected_to_say_something() -> None:
    for path in LOGS.glob("*.log"):
        assert len(first_error(path.read_text(encoding="utf-8")).what) > 10


def test_compiler_error_shows_the_source_line() -> None:
    failure = first_error((LOGS / "compiler-error.log").read_text(encoding="utf-8"))
    assert failure.what.splitlines()[1:] == ["    3 |     block_tq3_0 * x = 0;", "      |     ^~~~~~~~~~~"]


def test_undefined_symbol_of_apples_linker_is_named() -> None:
    failure = first_error((LOGS / "clang-linker-macos.log").read_text(encoding="utf-8"))
    assert "_ggml_metal_op_tq3_0" in failure.what


def test_a_silent_failure_is_not_invented() -> None:
    assert first_error("") == BuildFailure("No output.")
    assert first_error("a\nlast words\n\n").what == "last words"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[3/145] Building CXX object src/CMakeFiles/llama.dir/llama.cpp.o", Step(3, 145, "llama.cpp.o")),
        (
            "[78/78] Creating library symlink bin/libllama.so.0",
            Step(78, 78, "Creating library symlink bin/libllama.so.0"),
        ),
        ("[9/145] Linking CXX shared library bin/libggml.so.0", Step(9, 145, "libggml.so.0")),
        ("ninja: no work to do.", None),
        ("x [1/2] y", None),
    ],
)
def test_step(line: str, expected: Step | None) -> None:
    assert step(line) == expected
