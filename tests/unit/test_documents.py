"""README and docs: their commands exist, their links lead somewhere, their recorded runs can be read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from tqforge.cli.app import app
from tqforge.cli.verbs import register
from tqforge.report.schema import store

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "docs/architecture.md"]
FOLDERS = "cli|commands|proof|verify|pr|build|series|base|report|adapters|core"
PACKAGE_PATH = re.compile(rf"`((?:{FOLDERS})/[\w/.]+|errors\.py)`")


def command_lines(path: Path) -> list[str]:
    """Every `tqforge ...` of the shell blocks, split at `&&`, without comments."""
    blocks = re.findall(r"```sh\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.split("   #")[0] for block in blocks for line in block.splitlines()]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [part.removeprefix('eval "$(').removesuffix(')"') for part in parts if "tqforge " in part]


def parse(line: str) -> list[str]:
    """Parse a command line with the real program; return the names of its commands."""
    register(app)
    command: Any = typer.main.get_command(app)
    words, names = shlex.split(line)[1:], []
    while hasattr(command, "commands"):
        names.append(words.pop(0))
        command = command.commands[names[-1]]
    command.make_context(names[-1], words)
    return names


@pytest.mark.parametrize("line", command_lines(DOCUMENTS[0]))
def test_every_command_of_the_readme_parses(line: str) -> None:
    assert parse(line)


def test_the_readme_begins_with_the_commands_to_build_and_verify() -> None:
    assert command_lines(DOCUMENTS[0])[:2] == ["tqforge build", "tqforge verify --quick"]


def test_an_unknown_command_or_option_is_noticed() -> None:
    with pytest.raises(KeyError):
        parse("tqforge verfy")
    with pytest.raises(Exception, match="no-such-option"):
        parse("tqforge verify --no-such-option")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_package_paths_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []
    assert [name for name in PACKAGE_PATH.findall(text) if not (ROOT / "tqforge" / name).exists()] == []


def test_the_glossary_is_short() -> None:
    glossary = DOCUMENTS[1].read_text(encoding="utf-8").split("## Glossary")[1]
    assert 5 < len(re.findall(r"^\| (?!word|---)", glossary, re.MULTILINE)) <= 15


@pytest.mark.parametrize("path", sorted((ROOT / "docs/reports").glob("*.json")), ids=lambda path: path.stem)
def test_recorded_runs_can_be_read_and_name_no_folder_of_a_machine(path: Path) -> None:
    report = store.load(path)
    assert report.model is not None
    assert not [part for part in report.command if part.startswith("/")]
    assert path.stat().st_size < 200_000
