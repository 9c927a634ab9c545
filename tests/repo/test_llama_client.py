"""The parent's side of the child process, with a real process in the place of the worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tqforge.adapters.llama import client
from tqforge.adapters.llama.api.model import Generate, ListDevices, Tokenize, TokenLists
from tqforge.errors import CrashError, LoadError

WORKER = """
import json, os, sys, time

def send(number, **line):
    print(json.dumps({"id": number, **line}), flush=True)

LOADED = {"library": "l", "bindings": "1", "declared": 1, "fields": 1, "system": "", "gpu": False, "types": []}
for line in sys.stdin:
    asked = json.loads(line)
    number, op = asked["id"], asked["op"]
    if op == "Load":
        send(number, ok=LOADED)
    elif op == "Tokenize":
        send(number - 1, ok={"tokens": [[9]]})
        send(number, done=3)
        send(number, ok={"tokens": [[1, 2]]})
    elif op == "ListDevices":
        send(number, error={"name": "LoadError", "what": "no", "where": "w", "remedy": "r"})
    elif asked["args"]["limit"] == 1:
        time.sleep(60)
    elif asked["args"]["limit"] == 2:
        send(number, ok={"tokens": "wrong"})
    elif asked["args"]["limit"] == 3:
        print("x: error: out of paper", file=sys.stderr, flush=True)
        os.abort()
    else:
        sys.exit(7)
"""


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[client.Child]:
    (tmp_path / "fake_worker.py").write_text(WORKER)
    monkeypatch.setattr(client, "WORKER", "fake_worker")
    with client.Child(library=tmp_path, bindings=tmp_path, log=tmp_path / "log" / "child.log") as started:
        yield started


def test_progress_is_passed_on_and_a_late_reply_is_not(child: client.Child) -> None:
    ticks: list[int] = []
    assert child.ask(Tokenize(texts=("a",)), timeout=30, tick=ticks.append) == TokenLists(tokens=((1, 2),))
    assert ticks == [3]
    assert child.loaded.library == "l"


def test_an_error_of_the_child_is_raised_and_the_child_goes_on(child: client.Child) -> None:
    with pytest.raises(LoadError) as caught:
        child.ask(ListDevices(), timeout=30)
    assert (caught.value.what, caught.value.where, caught.value.remedy) == ("no", "w", "r")
    assert child.ask(Tokenize(texts=()), timeout=30).tokens == ((1, 2),)


def test_a_reply_of_another_type_is_refused(child: client.Child) -> None:
    with pytest.raises(ValueError, match="validation error"):
        child.ask(Generate(limit=2), timeout=30)


def test_a_child_that_does_not_answer_is_stopped(child: client.Child) -> None:
    with pytest.raises(CrashError, match=r"did not answer within 0\.5 s \(stage load, Generate\)"):
        child.ask(Generate(limit=1), timeout=0.5)
    assert not child.alive


def test_a_crash_names_signal_and_last_error_for_every_later_request(child: client.Child) -> None:
    child.stage = "needle"
    for _ in range(2):
        with pytest.raises(CrashError, match="died of SIGABRT in stage needle") as caught:
            child.ask(Generate(limit=3), timeout=30)
        assert caught.value.signal == "SIGABRT"
        assert caught.value.what.endswith("Last message: x: error: out of paper")


def test_an_exit_is_no_signal(child: client.Child) -> None:
    with pytest.raises(CrashError, match="ended with exit status 7") as caught:
        child.ask(Generate(limit=4), timeout=30)
    assert caught.value.signal == ""
