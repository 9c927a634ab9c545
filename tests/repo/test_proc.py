"""The subprocess door with real processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tqforge.adapters import proc

PY = sys.executable


def test_a_signal_is_named() -> None:
    done = proc.run([PY, "-c", "import os; os.kill(os.getpid(), 11)"], check=False)
    assert done.signal_name == "SIGSEGV"
    assert not done.ok


def test_failure_carries_the_tail() -> None:
    with pytest.raises(proc.ProcessError, match="the reason"):
        proc.run([PY, "-c", "import sys; print('the reason', file=sys.stderr); sys.exit(4)"])


def test_lines_and_log(tmp_path: Path) -> None:
    lines: list[str] = []
    log = tmp_path / "log"
    done = proc.run([PY, "-c", "print('a'); print('b')"], log=log, on_line=lines.append)
    assert lines == ["a", "b"]
    assert log.read_text() == done.stdout == "a\nb\n"


@pytest.mark.parametrize("streaming", [False, True])
def test_timeout_ends_grandchildren_too(tmp_path: Path, streaming: bool) -> None:
    marker = tmp_path / "alive"
    inner = f"import time; time.sleep(3); open({str(marker)!r}, 'w')"
    outer = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {inner!r}]); time.sleep(30)"
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        proc.run([PY, "-c", outer], timeout=1, on_line=print if streaming else None)
    assert time.monotonic() - start < 10
    time.sleep(3)
    assert not marker.exists()


def test_environment_changes_remove_and_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TQ_GONE", "1")
    code = "import os; print(os.environ.get('TQ_GONE'), os.environ['TQ_NEW'])"
    assert proc.run([PY, "-c", code], env={"TQ_GONE": None, "TQ_NEW": "2"}).stdout.split() == ["None", "2"]


def test_missing_program() -> None:
    with pytest.raises(FileNotFoundError):
        proc.run(["no-such-program-anywhere"])
