"""Start processes. Nothing else in tqforge does.

Every command is an argument list (never a shell) and is timed; errors carry the tail of its output.
"""

from __future__ import annotations

import os
import signal
import subprocess  # noqa: TID251 - this module is the door
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_TAIL_LINES = 25
_GRACE_SECONDS = 5.0
_ERRORS = ("fatal:", "error:", "ERROR:")
_shared: set[int] = set()


@contextmanager
def shared(descriptor: int) -> Iterator[None]:
    """Let children inherit a file descriptor, so that a lock on it is held until the last of them has exited."""
    _shared.add(descriptor)
    try:
        yield
    finally:
        _shared.discard(descriptor)


@dataclass(frozen=True, kw_only=True)
class Completed:
    """A process that has exited. `code` is its exit status, or the negative number of the signal that killed it."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def signal_name(self) -> str:
        """`SIGSEGV` for a process that a signal ended, else an empty string."""
        return signal_name(self.code)

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """Return the last lines of standard error, or of standard output when that is empty."""
        text = self.stderr.strip() or self.stdout.strip()
        return "\n".join(text.splitlines()[-lines:])


def signal_name(code: int) -> str:
    """Return the name of the signal that a negative exit status stands for, else an empty string."""
    if code >= 0:
        return ""
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def last_error(text: str) -> str:
    """Return the last line of a program's output that reports an error, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ([line for line in lines if line.startswith(_ERRORS)] or lines or [""])[-1]


class ProcessError(Exception):
    """A command that failed. Callers turn it into one of the classes of `tqforge.errors`."""

    def __init__(self, done: Completed) -> None:
        self.done = done
        how = done.signal_name or f"exit status {done.code}"
        super().__init__(f"{' '.join(done.argv)}: {how}\n{done.tail()}")


def merged_env(changes: Mapping[str, str | None] | None) -> dict[str, str]:
    """Return the environment with `changes` applied; None removes a variable."""
    env = dict(os.environ)
    for key, value in (changes or {}).items():
        if value is None:
            env.pop(key, None)
        else:
            env[key] = value
    return env


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str | None] | None = None,
    check: bool = True,
    timeout: float | None = None,
    stdin: str | None = None,
    log: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    on_start: Callable[[int], None] | None = None,
) -> Completed:
    """Run a command until it exits.

    `log` receives everything it writes (both streams, as they come); `on_line` is called for every line of
    standard output. With either, standard error is folded into standard output. `on_start` receives the process id,
    which is the session id too. The processes are stopped when the caller is interrupted. Raises ProcessError when
    `check` and the command failed, FileNotFoundError when the program does not exist, TimeoutError after `timeout`
    seconds.
    """
    words = [str(word) for word in argv]
    streaming = log is not None or on_line is not None
    start = time.monotonic()
    process = subprocess.Popen(
        words,
        cwd=cwd,
        env=merged_env(env),
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if streaming else subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        pass_fds=() if on_start else tuple(_shared),  # who asks for the process id ends its orphans itself
    )
    try:
        if on_start:
            on_start(process.pid)
        if streaming:
            out, err = _stream(process, stdin, log, on_line, timeout), ""
        else:
            out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        stop(process)
        raise TimeoutError(f"{words[0]} did not finish within {timeout:g} s") from None
    except BaseException:
        stop(process)
        raise
    done = Completed(
        argv=tuple(words), code=process.returncode, stdout=out, stderr=err, seconds=time.monotonic() - start
    )
    if check and not done.ok:
        raise ProcessError(done)
    return done


def _stream(
    process: subprocess.Popen[str],
    stdin: str | None,
    log: Path | None,
    on_line: Callable[[str], None] | None,
    timeout: float | None,
) -> str:
    assert process.stdout is not None
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        stop(process)

    timer = threading.Timer(timeout, expire) if timeout else None
    if timer:
        timer.start()
    lines: list[str] = []
    sink = log.open("w", encoding="utf-8") if log else None
    try:
        if stdin is not None and process.stdin:
            process.stdin.write(stdin)
            process.stdin.close()
        for line in process.stdout:
            lines.append(line)
            if sink:
                sink.write(line)
                sink.flush()
            if on_line:
                on_line(line.rstrip("\n"))
        process.wait()
    finally:
        if timer:
            timer.cancel()
        if sink:
            sink.close()
    if expired.is_set():
        raise subprocess.TimeoutExpired(process.args, timeout or 0.0)
    return "".join(lines)


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a process and everything it started: SIGTERM, then SIGKILL."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return


def replace(argv: Sequence[str | Path], env: Mapping[str, str | None]) -> int:
    """Run a program in the foreground with the user's own streams; returns its exit status (128+n for a signal)."""
    process = subprocess.Popen([str(word) for word in argv], env=merged_env(env))
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:  # the terminal sent it to the program too; let the program decide
            continue
        return code if code >= 0 else 128 - code


Popen = subprocess.Popen
PIPE = subprocess.PIPE
DEVNULL = subprocess.DEVNULL


def spawn(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    stderr: Path | None = None,
) -> subprocess.Popen[str]:
    """Start a child to talk to over its standard streams; its standard error goes to a file."""
    sink = stderr.open("w", encoding="utf-8") if stderr else None
    try:
        return subprocess.Popen(
            [str(word) for word in argv],
            cwd=cwd,
            env=merged_env(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink or subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            pass_fds=tuple(_shared),
        )
    finally:
        if sink:
            sink.close()
