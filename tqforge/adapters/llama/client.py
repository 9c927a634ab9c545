"""The parent's side of the child: requests with a time limit, and a name for every way to die."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tqforge.adapters import proc
from tqforge.adapters.llama import protocol
from tqforge.errors import CrashError, TqforgeError

Tick = Callable[[int], None]
WORKER = "tqforge.adapters.llama.child.worker"
_LOG_TAIL = 4000
_REMEDIES = {
    "SIGILL": "The library uses instructions this machine does not run: `tqforge build --portable`.",
    "SIGKILL": "The system ended it, most likely for memory: choose a shorter length or a smaller model.",
    "SIGABRT": "llama.cpp gave up on an assertion, shown above.",
}


class Child:
    """A running worker. Use it as a context manager; a dead one raises CrashError on every further call."""

    def __init__(
        self,
        *,
        library: Path,
        bindings: Path,
        log: Path,
        env: dict[str, str | None] | None = None,
        backend: tuple[Path, str] | None = None,
    ) -> None:
        self.log = log
        self.stage = "load"
        paths = [str(bindings), os.environ.get("PYTHONPATH", "")]
        changes: dict[str, str | None] = {
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "LLAMA_CPP_LIB_PATH": str(library),
            **(env or {}),
        }
        log.parent.mkdir(parents=True, exist_ok=True)
        self._process = proc.spawn(
            [sys.executable, "-m", "tqforge.adapters.llama.child.worker"], env=changes, stderr=log
        )
        self._replies: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._count = 0
        self.busy = False
        threading.Thread(target=self._read, daemon=True).start()
        more = {"backend": str(backend[0]), "device": backend[1]} if backend else {}
        self.loaded = self.call("load", {"library": str(library), "bindings": str(bindings), **more}, timeout=120)

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the child; it is asked first."""
        with suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(2)
        except Exception:
            proc.stop(self._process)

    def call(self, op: str, args: dict[str, Any], *, timeout: float, tick: Tick | None = None) -> dict[str, Any]:
        """One operation. Raises what the child raised, CrashError when it died or did not answer in time."""
        self._count += 1
        self.busy = True
        try:
            return self._exchange(op, args, timeout, tick)
        finally:
            self.busy = False

    def _exchange(self, op: str, args: dict[str, Any], timeout: float, tick: Tick | None) -> dict[str, Any]:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(protocol.encode({"id": self._count, "op": op, "args": args}) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._death(op) from None
        while True:
            try:
                line = self._replies.get(timeout=timeout)
            except queue.Empty:
                proc.stop(self._process)
                raise CrashError(
                    f"llama.cpp did not answer within {timeout:g} s (stage {self.stage}, {op}).", where=str(self.log)
                ) from None
            if line is None:
                raise self._death(op)
            message = protocol.decode(line)
            if message["id"] != self._count:
                continue
            if "done" in message:
                if tick:
                    tick(int(message["done"]))
            elif "error" in message:
                raise protocol.to_error(message["error"])
            else:
                return dict(message["ok"])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._replies.put(line)
        self._replies.put(None)

    def _death(self, op: str) -> TqforgeError:
        self._replies.put(None)  # a further call finds it dead as well
        code = self._process.wait()
        name = _signal_name(code)
        how = f"died of {name}" if name else f"ended with exit status {code}"
        return CrashError(
            f"The llama.cpp child process {how} in stage {self.stage} ({op}).{_last_words(self.log)}",
            signal=name,
            where=str(self.log),
            remedy=_REMEDIES.get(name, "The log at that path holds what it wrote."),
        )


def search_path(folder: Path) -> dict[str, str | None]:
    """Lets a library find its parts in its own folder, whatever path was written into it where it was built."""
    return {name: str(folder) for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")}


def _signal_name(code: int) -> str:
    if code >= 0:
        return ""
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def _last_words(log: Path) -> str:
    """The assertion or error line that native code left, when there is one."""
    with suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:].splitlines()
        telling = [line.strip() for line in lines if "GGML_ASSERT" in line or "GGML_ABORT" in line or "error:" in line]
        if telling:
            return f" It said: {telling[-1]}"
    return ""
