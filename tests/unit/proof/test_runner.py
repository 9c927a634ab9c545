"""The runner: status and reason of a test, what is cached, and what is built before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tqforge.adapters import proc
from tqforge.adapters.cmake import BuildTree
from tqforge.adapters.git import Repository
from tqforge.errors import TqforgeError
from tqforge.proof.metal_guard import MetalEmulator
from tqforge.proof.results import GuardStatus, ResultCache
from tqforge.proof.runner import ProofRunner, reason
from tqforge.series.trailers import Guard

TREE = "a" * 40
GUARD = Guard("test-x", ("all",))
OUT_OF_BOUNDS = "metal-emulator: error: read out of bounds"
METAL = Guard.parse("metal-emulator ops -o CPY")


def completed(code: int, stdout: str = "", stderr: str = "") -> proc.Completed:
    return proc.Completed(argv=("test-x",), code=code, stdout=stdout, stderr=stderr, seconds=0.1)


@dataclass
class Build:
    """Stands for the build folder; `error` is what the compiler says."""

    source: Path
    folder: Path
    error: proc.Completed | None = None
    build_log: Path = Path("build.log")
    built: list[tuple[str, ...]] = field(default_factory=list)

    def configure(self, _arguments: Sequence[str], *, fresh: bool) -> None:
        assert not fresh

    def build(self, targets: Sequence[str], _jobs: int, _progress: Callable[[str], None]) -> None:
        self.built.append(tuple(targets))
        if self.error:
            raise proc.ProcessError(self.error)


@dataclass
class Emulator:
    """Stands for the Metal emulator."""

    missing: str = ""
    problem: str = ""
    version: str = "12345678"

    def why_not(self, _guard: Guard) -> str:
        return self.missing

    def build(self, *_: object) -> str:
        return self.problem

    def command(self, guard: Guard, programs: Path) -> tuple[list[str | Path], dict[str, str | None]]:
        return [programs / "test-backend-ops", *guard.args], {"QUIET": "1"}


class Bench:
    """A runner on stand-ins, with the processes that it started."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *answers: proc.Completed) -> None:
        self.build, self.metal = Build(folder / "source", folder / "build"), Emulator()
        self.cache = ResultCache(folder / "results.json", "cc")
        self.started: list[list[str]] = []
        self.env: list[Any] = []
        queue = list(answers)

        def run(argv: Sequence[str | Path], **options: Any) -> proc.Completed:
            self.started.append([str(word) for word in argv])
            self.env.append(options["env"])
            return queue.pop(0)

        monkeypatch.setattr(proc, "run", run)
        monkeypatch.setattr(ProofRunner, "_check_out", lambda _, tree: None)
        self.runner = ProofRunner(
            repository=Repository(folder),
            cmake=cast(BuildTree, self.build),
            arguments=("-DX=1",),
            jobs=2,
            cache=self.cache,
            progress=lambda _: None,
            metal=cast(MetalEmulator, self.metal),
        )


@pytest.mark.parametrize(
    ("done", "status", "detail"),
    [
        (completed(0, "ok\nall 3 passed\n"), GuardStatus.PASSED, "all 3 passed"),
        (completed(0, "0/0 tests passed\n"), GuardStatus.NO_CASES, "0/0 tests passed"),
        (completed(0, "norm: 0 cases, 0 failed\n"), GuardStatus.NO_CASES, "norm: 0 cases, 0 failed"),
        (completed(0, "norm: 10 cases, 0 failed\n"), GuardStatus.PASSED, "norm: 10 cases, 0 failed"),
        (completed(1, "a\nFAIL: plus\nb\n"), GuardStatus.FAILED, "FAIL: plus"),
        (completed(77, "needs a GPU\n"), GuardStatus.SKIPPED, "needs a GPU"),
        (completed(-11, "some text\n"), GuardStatus.FAILED, "SIGSEGV"),
    ],
)
def test_the_status_of_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: proc.Completed, status: GuardStatus, detail: str
) -> None:
    bench = Bench(tmp_path, monkeypatch, done)
    found = bench.runner.run(TREE, ("test-x",), GUARD)
    assert (found.tree, found.test, found.targets) == (TREE, "test-x all", ("test-x",))
    assert (found.status, found.detail) == (status, detail)
    assert bench.build.built == [("test-x",)]
    assert bench.started == [[str(tmp_path / "build/bin/test-x"), "all"]]
    kept = bench.runner.recorded(TREE, ("test-x",), GUARD)
    assert kept == (None if status is GuardStatus.SKIPPED else found)  # on another day it may run


def test_a_test_that_takes_too_long_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch)

    def slow(*_: object, **__: object) -> proc.Completed:
        raise TimeoutError("900 s passed")

    monkeypatch.setattr(proc, "run", slow)
    found = bench.runner.run(TREE, ("test-x",), GUARD)
    assert (found.status, found.detail) == (GuardStatus.SKIPPED, "900 s passed")


def test_source_that_does_not_compile_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch)
    bench.build.error = completed(1, "FAILED: x.o\n/s/x.c:3:1: error: unknown type name 'y'\n")
    found = bench.runner.run(TREE, ("test-x",), GUARD)
    assert found.status is GuardStatus.BUILD_FAILED
    assert "unknown type name 'y'" in found.detail
    assert bench.started == []
    assert bench.runner.recorded(TREE, ("test-x",), GUARD) == found


@pytest.mark.parametrize(
    "error", [completed(1, "FAILED: x.o\nfatal error: No space left on device\n"), completed(-9, "x")]
)
def test_a_machine_that_cannot_compile_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: proc.Completed
) -> None:
    bench = Bench(tmp_path, monkeypatch)
    bench.build.error = error
    with pytest.raises(TqforgeError):
        bench.runner.run(TREE, ("test-x",), GUARD)
    assert bench.runner.recorded(TREE, ("test-x",), GUARD) is None


def test_a_metal_guard_runs_on_the_emulator_and_belongs_to_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch, completed(0, "3/3 tests passed\n"))
    found = bench.runner.run(TREE, ("test-backend-ops",), METAL)
    assert found.status is GuardStatus.PASSED
    assert bench.started == [[str(tmp_path / "build/bin/test-backend-ops"), "ops", "-o", "CPY"]]
    assert bench.env == [{"QUIET": "1"}]
    assert "12345678" in found.test
    bench.metal.version = "87654321"
    assert bench.runner.recorded(TREE, ("test-backend-ops",), METAL) is None


def test_a_metal_guard_without_emulator_is_skipped_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch)
    bench.metal.missing = "clang 19 is missing"
    found = bench.runner.run(TREE, ("test-backend-ops",), METAL)
    assert (found.status, found.detail) == (GuardStatus.SKIPPED, "clang 19 is missing")
    assert bench.build.built == []


def test_metal_kernels_that_do_not_compile_are_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch)
    bench.metal.problem = "x.metal:3: error: no such kernel"
    found = bench.runner.run(TREE, ("test-backend-ops",), METAL)
    assert (found.status, found.detail) == (GuardStatus.BUILD_FAILED, "x.metal:3: error: no such kernel")


@pytest.mark.parametrize(
    ("done", "line"),
    [
        (completed(1, "start\nvalue mismatch at 3\nend\n", "later error\n"), "value mismatch at 3"),
        (completed(1, "start\nend\n"), "end"),
        (completed(0, "1 FAIL expected\nend\n"), "end"),
        (
            completed(1, "FAIL: x\n", "metal-emulator: error: read out of bounds\n"),
            "metal-emulator: error: read out of bounds",
        ),
        (completed(1, "\x1b[31mFAIL\x1b[0m: x\n"), "FAIL: x"),
        (completed(1, ""), ""),
        (completed(-6, "FAIL\n"), "SIGABRT"),
        (completed(1, "error " + "x" * 300), "error " + "x" * 194),
    ],
)
def test_the_most_useful_line(done: proc.Completed, line: str) -> None:
    assert reason(done) == line
