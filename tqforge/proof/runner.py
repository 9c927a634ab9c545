"""Build one tree after the other in one build folder and run tests there. Results are cached by tree."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqforge.adapters import proc
from tqforge.adapters.cmake import BuildTree
from tqforge.adapters.git import Repository
from tqforge.build import compiler_log, metal_emulator
from tqforge.proof.metal_guard import MetalEmulator
from tqforge.proof.results import GuardResult, GuardStatus, ResultCache
from tqforge.series.trailers import Guard

_SKIPPED = 77  # the exit code of a test that cannot run on this machine
_NO_CASES = re.compile(r"\b0/0 tests passed|\b0 (?:tests|cases)\b")
_TIMEOUT = 900.0


@dataclass(frozen=True, kw_only=True)
class ProofRunner:
    """One worktree and one build folder for all trees, so that only the differences are compiled."""

    repository: Repository
    cmake: BuildTree
    arguments: Sequence[str]
    jobs: int
    cache: ResultCache
    progress: Callable[[str], None]
    metal: MetalEmulator

    def name(self, guard: Guard) -> str:
        """Return the name of a guard; a result of the Metal emulator belongs to one version of the emulator."""
        return f"{guard} (emulator {self.metal.version})" if guard.on_metal_emulator else str(guard)

    def recorded(self, tree: str, targets: tuple[str, ...], guard: Guard) -> GuardResult | None:
        """Return the cached result, if there is one."""
        return self.cache.get(tree, targets, self.name(guard))

    def run(self, tree: str, targets: tuple[str, ...], guard: Guard) -> GuardResult:
        """Build targets of a tree and run a test there."""
        result = partial(GuardResult, tree=tree, test=self.name(guard), targets=targets)
        if guard.on_metal_emulator and (why := self.metal.why_not(guard)):
            return result(status=GuardStatus.SKIPPED, detail=why)
        start = time.monotonic()
        self._check_out(tree)
        problem = self._compile(targets)
        if guard.on_metal_emulator and not problem:
            source = metal_emulator.Source(tree=self.cmake.source, libraries=self.cmake.folder / "bin", key=tree)
            problem = self.metal.build(guard, source, self.progress)
        status, detail = (GuardStatus.BUILD_FAILED, problem) if problem else self._test(guard)
        found = result(status=status, detail=detail, seconds=round(time.monotonic() - start, 1))
        return found if status is GuardStatus.SKIPPED else self.cache.add(found)

    def _check_out(self, tree: str) -> None:
        """Check out a tree in the worktree; files that do not differ keep their times."""
        commit = self.repository.commit_tree(tree, f"prove {tree}\n")
        work = Repository(self.cmake.source)
        if not work.exists():
            self.cmake.source.parent.mkdir(parents=True, exist_ok=True)
            self.repository.git("worktree", "prune", "--expire=now")
            self.repository.git("worktree", "add", "--quiet", "--detach", "--force", self.cmake.source, commit)
        lock = work.line("rev-parse", "--git-path", "index.lock")
        (work.path / lock).unlink(missing_ok=True)  # left by a killed git; the workspace lock is held
        work.git("checkout", "--quiet", "--force", "--detach", commit)
        work.git("clean", "--quiet", "-d", "--force")

    def _compile(self, targets: Sequence[str]) -> str:
        """Build the targets; return the compiler's error, or an empty string."""
        try:
            self.cmake.configure(self.arguments, fresh=False)
            self.cmake.build(targets, self.jobs, self.progress)
        except proc.ProcessError as error:
            failure = compiler_log.first_error(error.done.stdout)
            if error.done.signal_name or failure.cause != "source":
                raise compiler_log.explain(error, self.cmake.build_log) from error
            return failure.what
        return ""

    def _test(self, guard: Guard) -> tuple[GuardStatus, str]:
        """Run the test; return its status and the most useful line of its output."""
        self.progress(f"run {guard}")
        programs = self.cmake.folder / "bin"
        argv: list[str | Path] = [programs / guard.program, *guard.args]
        env: dict[str, str | None] = {}
        if guard.on_metal_emulator:
            argv, env = self.metal.command(guard, programs)
        try:
            done = proc.run(argv, cwd=self.cmake.folder, env=env, check=False, timeout=_TIMEOUT)
        except TimeoutError as error:
            return GuardStatus.SKIPPED, str(error)
        if done.ok:
            no_cases = _NO_CASES.search(done.stdout + done.stderr)
            return GuardStatus.NO_CASES if no_cases else GuardStatus.PASSED, reason(done)
        return GuardStatus.SKIPPED if done.code == _SKIPPED else GuardStatus.FAILED, reason(done)


def reason(done: proc.Completed) -> str:
    """Return the most useful line of a test's output: the first failure, or the last line."""
    if done.signal_name:
        return done.signal_name
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    failures = [line for line in lines if re.search(r"FAIL|error|not supported|mismatch|no such", line, re.I)]
    failures.sort(key=lambda line: "metal-emulator: error" not in line)  # the emulator says why a value is wrong
    chosen = failures[:1] if not done.ok and failures else lines[-1:]
    return re.sub(r"\x1b\[[0-9;]*m", "", " ".join(chosen))[:200]
