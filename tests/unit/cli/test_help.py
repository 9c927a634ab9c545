"""The help of every verb, kept as text. Regenerate it with `python tests/unit/cli/test_help.py`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tqforge.cli import verbs
from tqforge.cli.app import app
from tqforge.verify import settings

GOLDEN = Path(__file__).parents[2] / "data" / "help"
TERMINAL = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}


def commands() -> dict[str, Any]:
    """Return every command by its words, groups included."""
    verbs.register(app)

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        yield " ".join(words), command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*words, name))

    return dict(walk(typer.main.get_command(app), ("tqforge",)))


COMMANDS = commands()


def golden(name: str) -> Path:
    return GOLDEN / f"{name.replace(' ', '-')}.txt"


def shown(name: str) -> str:
    env = {**TERMINAL, "FORCE_COLOR": None, "GITHUB_ACTIONS": None, "PY_COLORS": None}
    result = CliRunner().invoke(app, [*name.split()[1:], "--help"], env=env, prog_name="tqforge")
    assert result.exit_code == 0, result.output
    return "".join(f"{line.rstrip()}\n" for line in result.output.strip().splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_the_recorded_one(name: str) -> None:
    assert shown(name) == golden(name).read_text(encoding="utf-8")


def test_no_help_is_recorded_for_a_verb_that_was_removed() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {golden(name).name for name in COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_flags_show_no_type(name: str) -> None:
    for param in COMMANDS[name].params:
        assert getattr(param, "help", None), (name, param.name)
    assert "<bool>" not in shown(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_has_the_same_short_form_everywhere(name: str) -> None:
    short = {"--base": "-b", "--out": "-o", "--jobs": "-j", "--model": "-m", "--threads": "-t"}
    for param in COMMANDS[name].params:
        for option, letter in short.items():
            assert option not in param.opts or letter in param.opts, (name, option)


def default(name: str, option: str) -> str:
    param = next(param for param in COMMANDS[name].params if option in param.opts)
    return str(param.show_default)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(0 if word == "0" else settings.parse_lengths(word)[0] for word in text.split(","))


@pytest.mark.parametrize(("option", "field"), [("--lengths", "lengths"), ("--prefixes", "quality_prefixes")])
def test_shown_defaults_of_verify_are_those_of_the_profiles(option: str, field: str) -> None:
    found = re.fullmatch(r"(.*); with --full (.*)", default("tqforge verify", option))
    assert found
    assert numbers(found[1]) == getattr(settings.QUICK, field)
    assert numbers(found[2]) == getattr(settings.FULL, field)


def test_shown_defaults_of_needles_are_those_of_both_profiles() -> None:
    for profile in (settings.QUICK, settings.FULL):
        assert settings.parse_depths(default("tqforge verify", "--depths")) == profile.depths
        assert int(default("tqforge verify", "--seeds")) == len(profile.seeds)


def test_shown_defaults_of_bench_are_those_of_the_full_profile() -> None:
    assert numbers(default("tqforge bench", "--depths")) == settings.FULL.speed_depths
    found = [int(default("tqforge bench", option)) for option in ("--prefill", "--decode", "--rounds")]
    assert found == [settings.FULL.speed_prefill, settings.FULL.speed_decode, settings.FULL.speed_rounds]


if __name__ == "__main__":
    os.environ.update(TERMINAL)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for path in GOLDEN.iterdir():
        path.unlink()
    for each in COMMANDS:
        golden(each).write_text(shown(each), encoding="utf-8")
