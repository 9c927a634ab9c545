"""The workflow for Macs cannot run here: what can be checked is its form, and every command line in it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner
from typer.exceptions import TyperException

from tqforge.cli.app import app
from tqforge.cli.verbs import register
from tqforge.verify import registry

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/macos.yml"


def document() -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return read


def steps() -> list[dict[str, Any]]:
    return [step for job in document()["jobs"].values() for step in job["steps"]]


def command_lines() -> list[str]:
    lines = [line.strip() for step in steps() for line in step.get("run", "").splitlines()]
    return [line for line in lines if line.startswith("tqforge ")]


def readme_lines() -> list[str]:
    """What a Mac owner is asked to type first."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"## On a Mac\n.*?```sh\n(.*?)```", text, re.DOTALL)
    assert section, "README.md has no section 'On a Mac' with commands"
    return [line for line in section[1].splitlines() if line.startswith("tqforge ")]


def parsed(line: str) -> Any:
    """The context of a command line, as the real program makes it. Raises TyperException for a wrong one."""
    register(app)
    command: Any = typer.main.get_command(app)
    words = shlex.split(line)[1:]
    while hasattr(command, "commands"):
        name = words.pop(0)
        assert name in command.commands, f"no such command: {name} in {line}"
        command = command.commands[name]
    return command.make_context(line, words)


def linted(path: Path) -> int:
    """GitHub's schema of workflows, as the linter carries it."""
    return CliRunner().invoke(check_jsonschema, ["--builtin-schema", "vendor.github-workflows", str(path)]).exit_code


def test_the_workflow_is_what_github_takes(tmp_path: Path) -> None:
    assert linted(WORKFLOW) == 0
    text = WORKFLOW.read_text(encoding="utf-8")
    wrong = tmp_path / "wrong.yml"
    for old in ("runs-on:", "steps:", "uses:"):
        assert old in text
        wrong.write_text(text.replace(old, f"x{old}", 1), encoding="utf-8")
        assert linted(wrong) == 1, old


@pytest.mark.parametrize("line", command_lines())
def test_every_command_of_the_workflow_is_one_of_ours(line: str) -> None:
    context = parsed(line)
    registry.choose(list(context.params.get("stage") or []))


@pytest.mark.parametrize("line", readme_lines())
def test_what_a_mac_owner_is_asked_to_type(line: str) -> None:
    context = parsed(line)
    registry.choose(list(context.params.get("stage") or []))


def test_a_wrong_command_line_is_noticed() -> None:
    with pytest.raises(TyperException):
        parsed("tqforge verify --no-such-option")
    with pytest.raises(AssertionError, match="no such command"):
        parsed("tqforge verfy")


def test_the_workflow_runs_on_macos_and_shows_all_that_a_mac_alone_can_show() -> None:
    jobs = document()["jobs"]
    assert all("macos" in job["runs-on"] for job in jobs.values())
    lines = command_lines()
    assert lines.index("tqforge build --metal") < min(i for i, line in enumerate(lines) if "verify" in line)
    stages = {word for line in lines for word in parsed(line).params.get("stage") or []}
    assert {"ops", "placement", "device"} <= stages
    assert any("--quick" in line for line in lines)
    assert all("--metal" in line for line in lines if "verify" in line)


def test_the_reports_are_kept_whatever_happens() -> None:
    kept = [step for step in steps() if "upload-artifact" in step.get("uses", "")]
    assert len(kept) == 1
    assert "always()" in kept[0]["if"]
    paths = kept[0]["with"]["path"].split()
    for line in command_lines():
        out = parsed(line).params.get("out")
        assert out is None or any(Path(out).is_relative_to(path) for path in paths), line


def test_actions_are_pinned_to_a_version() -> None:
    assert all(re.search(r"@v\d+$", step["uses"]) for step in steps() if "uses" in step)


def test_it_cannot_write_to_the_repository() -> None:
    assert document()["permissions"] == {"contents": "read"}
