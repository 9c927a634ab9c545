"""Reuse, rebuild reasons, error classes and interrupted builds, on a project that compiles in a second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import toyproject as toy
from native_library import heed_interrupts

from tqforge.adapters import toolchain
from tqforge.build import builder, portable, smoke_test
from tqforge.build.cmake_plan import Options
from tqforge.build.stamp import STAMP, LoadCheck
from tqforge.errors import BuildError, CrashError, DiskFullError, DownloadError, LoadError, ToolchainError

PASSED = LoadCheck(status="passed", pair="tq3_0/tq3_0", tokens=20)


class Case:
    """A toy checkout, a workspace, and how often the library was loaded."""

    def __init__(self, root: Path) -> None:
        self.source, self.workspace = root / "source", root / "workspace"
        self.loads: list[str] = []
        self.answers: list[LoadCheck | Exception] = []
        toy.write(self.source)

    def build(self, options: Options | None = None, tree: str = "a" * 40) -> builder.Built:
        return toy.build(self.workspace, self.source, options, tree)

    def check(self, request: smoke_test.Request, *_: object) -> LoadCheck:
        self.loads.append(str(request.library))
        answer = self.answers.pop(0) if self.answers else PASSED
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def case(compiler: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    made = Case(tmp_path)
    monkeypatch.setattr(smoke_test, "run", made.check)
    return made


def test_a_second_build_does_nothing_and_a_changed_tree_is_named(case: Case) -> None:
    first = case.build()
    assert first.reasons == ("first build",)
    said = subprocess.run([first.bin / "llama-server"], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "tqforge-aaaaaaaaaaaa"
    second = case.build()
    assert second.reasons == ()
    assert second.stamp == first.stamp
    assert len(case.loads) == 1
    third = case.build(tree="b" * 40)
    assert third.reasons == ("the source tree changed: aaaaaaaaaaaa -> bbbbbbbbbbbb",)
    said = subprocess.run([third.bin / "llama-server"], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "tqforge-bbbbbbbbbbbb"


def test_a_deleted_program_is_made_again(case: Case) -> None:
    (case.build().bin / "llama-bench").unlink()
    built = case.build()
    assert built.reasons == ("missing: bin/llama-bench",)
    assert (built.bin / "llama-bench").is_file()


def test_the_compilers_own_words_are_the_error_and_the_next_build_goes_on(case: Case) -> None:
    (case.source / "llama.c").write_text("int toy(void) { return tq3_0; }\n")
    with pytest.raises(BuildError, match="tq3_0") as caught:
        case.build()
    assert caught.value.where == f"{case.source}/llama.c:1"
    assert Path(caught.value.remedy.rpartition(" ")[2]).is_file()
    assert builder.all_builds(toy.context(case.workspace).workspace, "upstream") == []
    toy.write(case.source)
    assert case.build().reasons == ("the last build was interrupted",)


def test_a_broken_project_is_cmakes_error(case: Case) -> None:
    (case.source / "CMakeLists.txt").write_text(f"{toy.CMAKE}\nfind_package(Nonsense REQUIRED)\n")
    with pytest.raises(BuildError, match="Nonsense"):
        case.build()


@pytest.mark.parametrize("name", ["CC", "CXX"])
def test_no_compiler(case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    if name == "CXX":
        (empty / "cc").symlink_to("/usr/bin/cc")
    with pytest.raises(ToolchainError, match="compiler not found") as caught:
        case.build()
    assert caught.value.remedy


def test_a_compiler_that_is_broken(case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && echo broken 1.0 && exit 0\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(ToolchainError, match="simple program"):
        case.build()
    monkeypatch.delenv("CC")
    assert case.build().reasons == ("first build",)


def test_another_compiler_starts_afresh(case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    case.build()
    other = tmp_path / "other-cc"
    other.symlink_to("/usr/bin/cc")
    monkeypatch.setenv("CC", str(other))
    built = case.build()
    assert len(built.reasons) == 1
    assert "compiler changed" in built.reasons[0]
    cache = (built.folder / "CMakeCache.txt").read_text()
    assert str(other) in cache


def test_further_targets_are_built_when_asked_for(case: Case) -> None:
    built = case.build()
    assert not (built.bin / "test-toy").exists()
    assert {"test-toy", "llama-server"} <= built.known_programs()
    toy.ensure_targets(case.workspace, built, ("test-toy",))
    assert (built.bin / "test-toy").is_file()
    assert case.build().reasons == ()
    with pytest.raises(BuildError, match="unknown target"):
        toy.ensure_targets(case.workspace, built, ("test-nothing",))


def test_further_targets_are_built_when_the_cmake_of_the_first_build_is_gone(case: Case) -> None:
    built = case.build()
    for name in ("CMakeCache.txt", "build.ninja"):
        path = built.folder / name
        path.write_text(path.read_text().replace(str(toolchain.tools().cmake.path), "/gone/cmake"))
    toy.ensure_targets(case.workspace, built, ("test-toy",))
    assert (built.bin / "test-toy").is_file()
    assert "/gone/cmake" not in (built.folder / "build.ninja").read_text()


def test_a_library_that_fails_its_load_check_is_no_build(case: Case) -> None:
    case.answers = [LoadError("no tq3_0")]
    with pytest.raises(LoadError):
        case.build()
    assert not list(case.workspace.rglob(STAMP))
    assert case.build().reasons == ("the last build was interrupted",)


def test_a_deferred_check_is_made_up_for(case: Case) -> None:
    case.answers = [LoadCheck(status="skipped", reason=DownloadError("offline").what)]
    assert case.build().load.status == "skipped"
    again = case.build()
    assert again.reasons == ()
    assert again.load.status == "passed"
    assert case.build().load.status == "passed"
    assert len(case.loads) == 2


@pytest.mark.parametrize("signal", ["SIGILL", "SIGSEGV", "SIGBUS"])
def test_a_processor_fault_gives_a_portable_build_that_is_remembered(case: Case, signal: str) -> None:
    case.answers = [CrashError("The child process died.", signal=signal)]
    built = case.build()
    assert not built.stamp.native
    assert "-DGGML_NATIVE=OFF" in built.stamp.arguments
    again = case.build()
    assert again.reasons == ()
    assert not again.stamp.native
    native = case.build(Options(native=True))
    assert native.reasons
    assert native.stamp.native
    host = toolchain.host()
    assert portable.why_portable(toy.context(case.workspace).workspace, host) == ""


def test_a_processor_fault_in_a_native_build_that_was_asked_for_is_an_error(case: Case) -> None:
    case.answers = [CrashError("The child process died.", signal="SIGILL")]
    with pytest.raises(CrashError):
        case.build(Options(native=True))


def test_an_assertion_does_not_cause_a_portable_build(case: Case) -> None:
    case.answers = [CrashError("The child process died.", signal="SIGABRT")]
    with pytest.raises(CrashError):
        case.build()


def test_a_full_disk_is_named_and_the_next_build_succeeds(case: Case, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("deferred: only root may mount a small disk")
    try:
        case.workspace = small / "workspace"
        (case.source / "llama.c").write_text("const char big[8000000] = {1};\n")
        with pytest.raises(DiskFullError):
            case.build()
        toy.write(case.source)
        assert case.build().reasons == ("the last build was interrupted",)
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.fixture
def slow_compiler(case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A compiler that, while the file `hold` exists, writes half an object file and hangs."""
    hold, script = tmp_path / "hold", tmp_path / "slow-cc"
    script.write_text(
        '#!/bin/sh\nout=\nfor word in "$@"; do [ "$last" = -o ] && out=$word; last=$word; done\n'
        f'case "$out" in *llama.c.o) if [ -e {hold} ]; then echo half >"$out"; sleep 600; fi;; esac\nexec cc "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    return hold


def _wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists() and path.read_bytes() == b"half\n":
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} was never written")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_build_leaves_nothing_at_work_and_the_next_one_goes_on(
    case: Case, slow_compiler: Path, how: signal.Signals
) -> None:
    slow_compiler.touch()
    words: list[str | Path] = [sys.executable, toy.__file__, case.workspace, case.source]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, preexec_fn=heed_interrupts)
    folder = case.workspace / "builds" / "upstream"
    try:
        for _ in range(600):
            if found := list(folder.glob("*/CMakeFiles/llama.dir/llama.c.o")):
                break
            time.sleep(0.1)
        _wait_for(found[0])
        os.kill(process.pid, how)
        process.wait(30)
        slow_compiler.unlink()
        built = case.build()
    finally:
        process.kill()
    assert built.reasons == ("the last build was interrupted",)
    assert subprocess.run([built.bin / "llama-server"], check=False).returncode == 0
    at_work = [p.cmdline() for p in psutil.process_iter(["cmdline"]) if "slow-cc" in " ".join(p.info["cmdline"] or [])]
    assert not [words for words in at_work if str(slow_compiler.parent) in " ".join(words)]
