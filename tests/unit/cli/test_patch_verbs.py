"""The verbs of `tqforge patch`: each module is registered, and options that exclude each other are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from tqforge.cli.app import main_inner
from tqforge.cli.verbs import patch
from tqforge.errors import UsageError


def test_every_module_is_a_verb() -> None:
    app = typer.Typer()
    patch.register(app)
    group = app.registered_groups[0].typer_instance
    assert group
    found = {command.callback.__name__ for command in group.registered_commands if command.callback}
    modules = {path.stem for path in Path(patch.__file__).parent.glob("*.py")} - {"__init__", "options"}
    assert found == modules


@pytest.mark.parametrize(
    "argv",
    [
        ["patch", "apply", "--continue", "--abort"],
        ["patch", "apply", "--skip", "--continue"],
        ["patch", "export", "--check", "--keep-shifted"],
        ["patch", "export", "--check", "--revision", "x"],
    ],
)
def test_options_that_exclude_each_other(argv: list[str]) -> None:
    with pytest.raises(UsageError):
        main_inner(argv)


def test_a_missing_trailer_is_not_asked_for_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(UsageError, match="--why is missing") as caught:
        main_inner(["patch", "new", "ggml-x", "--subject", "ggml : x", "--guard", "test-x"])
    assert "--why" in caught.value.remedy
