"""A failed CMake or Ninja run becomes the error class of its first real error."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tqforge.adapters import toolchain
from tqforge.adapters.proc import Completed, ProcessError
from tqforge.build.compiler_log import explain
from tqforge.errors import BuildError, DiskFullError, ToolchainError, TqforgeError

LOG = Path("/workspace/build.log")
LOGS = Path(__file__).parents[2] / "data" / "buildlogs"


def explained(text: str, code: int = 1) -> TqforgeError:
    done = Completed(argv=("/venv/bin/ninja", "-j2"), code=code, stdout=text, stderr="", seconds=1.0)
    return explain(ProcessError(done), LOG)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("compiler-error", BuildError),
        ("linker-error", BuildError),
        ("cmake-error", BuildError),
        ("out-of-memory", BuildError),
        ("disk-full", DiskFullError),
        ("no-compiler", ToolchainError),
        ("broken-compiler", ToolchainError),
    ],
)
def test_each_log_has_its_error_class(name: str, error: type[TqforgeError]) -> None:
    assert type(explained((LOGS / f"{name}.log").read_text(encoding="utf-8"))) is error


def test_a_signal_is_named_whatever_the_log_says() -> None:
    found = explained("x.c:1:2: error: never mind", -signal.SIGSEGV)
    assert (found.what, found.where) == ("ninja died of SIGSEGV.", str(LOG))


def test_a_source_error_points_at_the_line_and_at_the_log() -> None:
    found = explained("ggml/x.c:12:3: error: expected ';'")
    assert (found.what, found.where) == ("expected ';'", "ggml/x.c:12")
    assert found.remedy == f"Read the whole log: {LOG}"


def test_without_a_place_the_log_is_named() -> None:
    assert explained("it went wrong").where == str(LOG)


def test_too_little_memory_suggests_one_job() -> None:
    assert "`--jobs 1`" in explained("c++: fatal error: Killed signal terminated program cc1plus").remedy


def test_a_missing_compiler_says_how_to_install_one() -> None:
    assert explained("No CMAKE_C_COMPILER could be found.").remedy == toolchain.compiler_remedy()
