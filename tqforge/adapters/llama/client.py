"""Start the llama.cpp child process, send it requests with a time limit, and report how it died."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from tqforge.adapters import proc
from tqforge.adapters.llama import protocol
from tqforge.adapters.llama.api import model
from tqforge.adapters.llama.api.messages import Reply, Request
from tqforge.errors import CrashError, TqforgeError

Tick = Callable[[int], None]
WORKER = "tqforge.adapters.llama.child.worker"
_LOG_TAIL = 4000
_LOAD_TIMEOUT = 120.0
_REMEDIES = {
    "SIGILL": "The library uses instructions that this CPU lacks. Run `tqforge build --portable`.",
    "SIGKILL": "The system killed it, probably for lack of memory. Choose a shorter length or a smaller model.",
    "SIGABRT": "An assertion in llama.cpp failed; its message is above.",
}


class Child:
    """A running child process, also a context manager. Once it is dead, every request raises CrashError.

    library, bindings: folders. log: receives standard error. backend: the file of a further backend and its device.
    """

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
        changes: dict[str, str | None] = {
            "PYTHONPATH": os.pathsep.join(_import_path(bindings)),
            "LLAMA_CPP_LIB_PATH": str(library),
            **(env or {}),
        }
        log.parent.mkdir(parents=True, exist_ok=True)
        # -P: Python files in the user's folder must not shadow ours or run at all
        self._process = proc.spawn([sys.executable, "-P", "-m", WORKER], env=changes, stderr=log)
        self._replies: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._count = 0
        threading.Thread(target=self._read, daemon=True).start()
        file, device = backend or (None, "")
        load = model.Load(library=library, bindings=bindings, backend=file, device=device)
        self.loaded = self.ask(load, timeout=_LOAD_TIMEOUT)

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
        """Close the input of the child, and stop it if it does not exit within 2 s."""
        with suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(2)
        except Exception:
            proc.stop(self._process)

    def ask(self, request: Request[Reply], *, timeout: float, tick: Tick | None = None) -> Reply:
        """Return the reply to a request; `tick` receives progress in tokens.

        Raises the error of the child, or CrashError if it dies or sends nothing for `timeout` seconds.
        """
        self._count += 1
        name = type(request).__name__
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(protocol.request_line(self._count, request) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._death(name) from None
        while True:
            try:
                line = self._replies.get(timeout=timeout)
            except queue.Empty:
                proc.stop(self._process)
                raise CrashError(
                    f"llama.cpp did not answer within {timeout:g} s (stage {self.stage}, {name}).", where=str(self.log)
                ) from None
            if line is None:
                raise self._death(name)
            message = protocol.ReplyLine.model_validate_json(line)
            if message.id != self._count:
                continue
            if message.error is not None:
                raise protocol.to_error(message.error)
            if message.ok is not None:
                return protocol.read_reply(request, message.ok)
            if tick and message.done is not None:
                tick(message.done)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._replies.put(line)
        self._replies.put(None)

    def _death(self, op: str) -> TqforgeError:
        self._replies.put(None)  # for later requests
        code = self._process.wait()
        name = proc.signal_name(code)
        how = f"died of {name}" if name else f"ended with exit status {code}"
        return CrashError(
            f"The llama.cpp child process {how} in stage {self.stage} ({op}).{_last_error(self.log)}",
            signal=name,
            where=str(self.log),
            remedy=_REMEDIES.get(name, "See its log at that path."),
        )


def _import_path(bindings: Path) -> list[str]:
    """Return the bindings and the user's own PYTHONPATH, without entries that stand for the current folder."""
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(bindings), *(str(Path(path).absolute()) for path in own if path not in ("", "."))]


def search_path(folder: Path) -> dict[str, str | None]:
    """Return variables that let a library find its parts in its own folder, whatever path was linked into it."""
    return {name: str(folder) for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")}


def _last_error(log: Path) -> str:
    """Return the last assertion or error line in the log, if there is one."""
    with suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:].splitlines()
        telling = [line.strip() for line in lines if "GGML_ASSERT" in line or "GGML_ABORT" in line or "error:" in line]
        if telling:
            return f" Last message: {telling[-1]}"
    return ""
