from __future__ import annotations

import json
import signal
import sys
import threading

import pytest
import typer

from tqforge import errors
from tqforge.adapters.console import Output
from tqforge.cli import app as cli


@pytest.mark.parametrize("cls", errors.error_classes(), ids=lambda cls: cls.__name__)
def test_every_error_class_has_a_code_of_its_own_and_reaches_the_exit_status(
    cls: type[errors.TqforgeError], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise cls("what happened", where="a place", remedy="do this")

    assert cli._guarded(fail, Output(json_mode=True)) == int(cls.code)
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["class"] == cls.__name__
    assert "what happened" in err
    assert "a place" in err
    assert "do this" in err


def test_exit_codes_are_distinct() -> None:
    codes = [int(cls.code) for cls in errors.error_classes()]
    assert len(codes) == len(set(codes))
    assert min(codes) >= 2


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
        (typer.Exit(7), 7),
        (ZeroDivisionError("x"), 3),
    ],
)
def test_other_ends(raised: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise raised

    assert cli._guarded(fail, Output()) == code
    capsys.readouterr()


def test_sigterm_is_told_apart_from_ctrl_c_behind_typer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typer catches both inside a command, and gives both the same code."""

    def ended(_argv: list[str]) -> int:
        with pytest.raises(errors.Terminated):
            cli._terminate(15, None)
        return 130

    monkeypatch.setattr(cli, "main_inner", ended)
    monkeypatch.setattr(cli, "_terminated", threading.Event())
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 143
    assert "Interrupted" in capsys.readouterr().err


def test_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tqforge", "nonsense"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_no_control_codes_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output()
    out.step("a step [1/2]")
    out.warn("careful [x]")
    with out.meter("work", total=10) as meter:
        meter.update(5)
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "a step [1/2]" in err
    assert "careful [x]" in err


def test_json_documents_refuse_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        Output(json_mode=True).document({"x": float("nan")})
