"""Run CMake and Ninja in a build folder, with a log of each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tqforge.adapters import fs, proc
from tqforge.core.values import Tools

Environment = Mapping[str, str | None]
_RUNNING = ".running"


@dataclass(frozen=True, kw_only=True)
class BuildTree:
    """One build folder of one source folder."""

    source: Path
    folder: Path
    tools: Tools
    environment: Environment

    @property
    def configure_log(self) -> Path:
        return self.folder / "configure.log"

    @property
    def build_log(self) -> Path:
        return self.folder / "build.log"

    @property
    def lost_its_cmake(self) -> bool:
        """Whether the CMake that configured the folder was removed, e.g. with its virtual environment."""
        found = self._cached("CMAKE_COMMAND")
        return found is not None and not Path(found).exists()

    @property
    def is_of_another_source(self) -> bool:
        """Whether the folder was configured for another source folder, which CMake refuses."""
        found = self._cached("CMAKE_HOME_DIRECTORY")
        return found is not None and Path(found) != self.source

    def is_configured_with(self, argument: str) -> bool:
        """Return whether CMake's cache holds the value of an argument `-DNAME=VALUE`."""
        name, _, value = argument.removeprefix("-D").partition("=")
        return self._cached(name) == value

    def _cached(self, name: str) -> str | None:
        found = re.search(rf"^{re.escape(name)}:[A-Z]+=(.+)$", self._cache(), re.MULTILINE)
        return found[1] if found else None

    def _cache(self) -> str:
        try:
            return (self.folder / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def configure(self, arguments: Sequence[str], *, fresh: bool) -> proc.Completed:
        """Run CMake; `fresh` discards what an earlier run detected. Raises ProcessError."""
        with fs.disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            return proc.run(
                [
                    self.tools.cmake.path,
                    *(["--fresh"] if fresh else []),
                    *("-S", self.source, "-B", self.folder, "-G", "Ninja"),
                    f"-DCMAKE_MAKE_PROGRAM={self.tools.ninja.path}",
                    f"-DCMAKE_C_COMPILER={self.tools.cc.path}",
                    f"-DCMAKE_CXX_COMPILER={self.tools.cxx.path}",
                    *arguments,
                ],
                env=self.environment,
                log=self.configure_log,
            )

    def build(self, targets: Sequence[str], jobs: int, on_line: Callable[[str], None]) -> proc.Completed:
        """Run Ninja on some targets. Raises ProcessError."""
        running = self.folder / _RUNNING

        def started(pid: int) -> None:
            running.write_text(str(pid), encoding="ascii")

        with fs.disk_errors(self.folder):
            try:
                return proc.run(
                    [self.tools.ninja.path, "-C", self.folder, f"-j{jobs}", *targets],
                    env=self.environment,
                    log=self.build_log,
                    on_line=on_line,
                    on_start=started,
                )
            finally:
                running.unlink(missing_ok=True)

    def end_orphans(self) -> int:
        """Stop compilers that a killed tqforge left running in this folder, and return how many.

        They belong to the session that Ninja started and run in this folder.
        """
        running = self.folder / _RUNNING
        try:
            session = int(running.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0
        ended = 0
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == session and Path(process.cwd()) == self.folder:
                    process.kill()
                    process.wait(5)
                    ended += 1
        running.unlink(missing_ok=True)
        return ended
