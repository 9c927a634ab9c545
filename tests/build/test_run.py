"""`tqforge run` and `tqforge env` through the program, on the toy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import toyproject as toy

from tqforge.build import smoke_test
from tqforge.build.builder import Built
from tqforge.build.stamp import LoadCheck

ECHO = """#include <cstdio>
#include <cstdlib>
int main(int count, char ** words) {
    for (int i = 1; i < count; i++) { std::puts(words[i]); }
    std::puts(std::getenv("LLAMA_CPP_LIB_PATH"));
    return count > 1 ? std::atoi(words[1]) : 0;
}
"""


@pytest.fixture
def built(compiler: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    monkeypatch.setattr(smoke_test, "run", lambda *_: LoadCheck(status="passed"))
    monkeypatch.setenv("TQFORGE_HOME", str(tmp_path / "workspace"))
    toy.write(tmp_path / "source")
    (tmp_path / "source" / "main.cpp").write_text(ECHO)
    return toy.build(tmp_path / "workspace", tmp_path / "source")


def _tqforge(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tqforge", *words], capture_output=True, text=True, check=False, timeout=120
    )


def test_arguments_and_exit_status_pass_through(built: Built) -> None:
    done = _tqforge("run", "--", "llama-server", "7", "-m", "x.gguf", "--help", "--json")
    assert done.stdout.splitlines() == ["7", "-m", "x.gguf", "--help", "--json", str(built.bin)]
    assert done.returncode == 7


def test_a_program_that_is_not_built_yet_is_built_first(built: Built) -> None:
    assert not (built.bin / "test-toy").exists()
    done = _tqforge("run", "test-toy")
    assert done.returncode == 0
    assert "Building test-toy" in done.stderr


def test_a_program_of_the_users_sees_the_build(built: Built) -> None:
    done = _tqforge("run", "--", "sh", "-c", "command -v llama-bench; echo $LLAMA_CPP_LIB_PATH")
    assert done.stdout.splitlines() == [str(built.bin / "llama-bench"), str(built.bin)]


def test_an_unknown_program_is_a_usage_error_that_names_what_there_is(built: Built) -> None:
    done = _tqforge("run", "llama-nothing")
    assert done.returncode == 2
    assert "llama-server" in done.stderr


def test_env_is_for_a_shell_and_for_a_program(built: Built) -> None:
    script = f'eval "$({sys.executable} -m tqforge env)"; command -v llama-cli; echo "$LLAMA_CPP_LIB_PATH"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines() == [str(built.bin / "llama-cli"), str(built.bin)]
    said = json.loads(_tqforge("env", "--json").stdout)
    assert said["path"] == str(built.bin)
    assert said["bindings"] == "llama-cpp-python==0.3.36"


def test_without_a_build_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TQFORGE_HOME", str(tmp_path / "empty"))
    done = _tqforge("run", "llama-server")
    assert done.returncode == 22
    assert "tqforge build" in done.stderr
