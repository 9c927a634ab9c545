"""Deletion proofs and prefix builds: each patch compiles in its place, and its guard is red without it.

Every result belongs to a tree id and is kept, so an interrupted proof goes on where it stopped.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from tqforge.adapters import fs, proc
from tqforge.adapters.cmake import BuildTree
from tqforge.adapters.git import Repository
from tqforge.base.source import DATE
from tqforge.build import builder, compiler_log, metal_emulator
from tqforge.proof.metal_guard import MetalHost
from tqforge.series.trailers import Guard

_DEFERRED = 77  # the exit code with which a test says that it cannot run here
_NO_CASES = re.compile(r"\b0/0 tests passed|\b0 (?:tests|cases)\b")
_TIMEOUT = 900.0
_TAIL = 6


class Verdict(StrEnum):
    """What a test showed on one tree."""

    GREEN = "green"
    RED = "red"
    RED_BUILD = "red: does not compile"
    NO_CASES = "ran no case"
    DEFERRED = "deferred"

    @property
    def is_red(self) -> bool:
        return self in (Verdict.RED, Verdict.RED_BUILD)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One test on one tree."""

    tree: str
    test: str
    verdict: Verdict
    detail: str = ""
    seconds: float = 0.0  # to build and run it

    @property
    def key(self) -> str:
        return f"{self.tree} {self.test}"


@dataclass
class Ledger:
    """All results of a toolchain, kept in one file."""

    path: Path
    key: str  # toolchain and build arguments
    results: dict[str, Seen] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, key: str) -> Ledger:
        """What was recorded under that key; nothing when the file is not there or not readable."""
        ledger = cls(path, key)
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            if raw["key"] == key:
                seen = [Seen(**{**item, "verdict": Verdict(item["verdict"])}) for item in raw["results"]]
                ledger.results = {item.key: item for item in seen}
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return ledger

    def get(self, tree: str, test: str) -> Seen | None:
        return self.results.get(f"{tree} {test}")

    def add(self, seen: Seen) -> Seen:
        self.results[seen.key] = seen
        rows = [asdict(item) for _, item in sorted(self.results.items())]
        fs.write_text(self.path, json.dumps({"schema": 1, "key": self.key, "results": rows}, indent=1) + "\n")
        return seen


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One work tree and one build folder for all trees, one after the other: only what differs is compiled."""

    repository: Repository
    cmake: BuildTree
    arguments: Sequence[str]
    jobs: int
    ledger: Ledger
    progress: Callable[[str], None]
    metal: MetalHost

    def name(self, guard: Guard) -> str:
        """A guard by name; on the Metal host its result belongs to the very host that ran it."""
        return f"{guard} (host {self.metal.version})" if guard.on_metal_host else str(guard)

    def see(self, tree: str, test: str, targets: Sequence[str], *, run: Guard) -> Seen:
        """Build targets of a tree and run a test there, or take the recorded result."""
        if known := self.ledger.get(tree, test):
            return known
        if run.on_metal_host and (reason := self.metal.why_not(run)):
            return Seen(tree=tree, test=test, verdict=Verdict.DEFERRED, detail=reason)
        start = time.monotonic()
        self.checkout(tree)
        problem = self._compile(targets)
        if run.on_metal_host and not problem:
            source = metal_emulator.Source(tree=self.cmake.source, libraries=self.cmake.folder / "bin", key=tree)
            problem = self.metal.build(run, source, self.progress)
        if problem:
            seen = Seen(tree=tree, test=test, verdict=Verdict.RED_BUILD, detail=problem)
        else:
            seen = self._run(tree, test, run)
        seen = replace(seen, seconds=round(time.monotonic() - start, 1))
        return seen if seen.verdict is Verdict.DEFERRED else self.ledger.add(seen)

    def checkout(self, tree: str) -> None:
        """Bring the work tree to a tree; files that do not differ keep their times."""
        commit = self.repository.commit_tree(tree, f"prove {tree}\n", DATE)
        work = Repository(self.cmake.source)
        if not work.exists():
            self.cmake.source.parent.mkdir(parents=True, exist_ok=True)
            self.repository.git("worktree", "prune", "--expire=now")
            self.repository.git("worktree", "add", "--quiet", "--detach", "--force", self.cmake.source, commit)
        lock = work.line("rev-parse", "--git-path", "index.lock")
        (work.path / lock).unlink(missing_ok=True)  # of a git that was killed; the workspace lock is held
        work.git("checkout", "--quiet", "--force", "--detach", commit)
        work.git("clean", "--quiet", "-d", "--force")

    def _compile(self, targets: Sequence[str]) -> str:
        """Why the targets do not build, or an empty string."""
        try:
            self.cmake.configure(self.arguments, fresh=False)
            self.cmake.build(targets, self.jobs, self.progress)
        except proc.ProcessError as error:
            failure = compiler_log.first_error(error.done.stdout)
            if error.done.signal_name or failure.cause != "source":
                raise builder.explain(error, self.cmake.build_log) from error
            return failure.what
        return ""

    def _run(self, tree: str, test: str, guard: Guard) -> Seen:
        self.progress(f"run {guard}")
        programs = self.cmake.folder / "bin"
        argv: list[str | Path] = [programs / guard.program, *guard.args]
        env: dict[str, str | None] = {}
        if guard.on_metal_host:
            argv, env = self.metal.command(guard, programs)
        try:
            done = proc.run(argv, cwd=self.cmake.folder, env=env, check=False, timeout=_TIMEOUT)
        except TimeoutError as error:
            return Seen(tree=tree, test=test, verdict=Verdict.DEFERRED, detail=str(error))
        text = done.stdout + done.stderr
        if done.ok:
            verdict = Verdict.NO_CASES if _NO_CASES.search(text) else Verdict.GREEN
        else:
            verdict = Verdict.DEFERRED if done.code == _DEFERRED else Verdict.RED
        return Seen(tree=tree, test=test, verdict=verdict, detail=_reason(done))


def _reason(done: proc.Completed) -> str:
    """The line that says most: the first failure, or the last words."""
    if done.signal_name:
        return done.signal_name
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    failures = [line for line in lines if re.search(r"FAIL|error|not supported|mismatch|no such", line, re.I)]
    failures.sort(key=lambda line: "metal-host: error" not in line)  # what the host found says why a value is wrong
    chosen = failures[:1] if not done.ok and failures else lines[-1:]
    return re.sub(r"\x1b\[[0-9;]*m", "", " ".join(chosen))[:200]
