"""GitHub's files cannot run here: check their form, and every tqforge command line in them."""

from __future__ import annotations

import re
import shlex
import tomllib
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
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MACOS = ROOT / ".github/workflows/macos.yml"
#: Actions by commit, with the version that Dependabot keeps in step.
PINNED = re.compile(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
#: What a job may write, and where.
WRITES = {("release.yml", "publish"): {"id-token": "write"}, ("release.yml", "attach"): {"contents": "write"}}
SCHEMAS = {
    ".github/dependabot.yml": "dependabot",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    **{str(p.relative_to(ROOT)): "github-workflows" for p in WORKFLOWS},
    **{
        str(p.relative_to(ROOT)): "github-issue-forms"
        for p in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
        if p.name != "config.yml"
    },
}


def document(path: Path) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in document(path)["jobs"].values() for step in job["steps"]]


def command_lines(path: Path) -> list[str]:
    lines = [line.strip() for step in steps(path) for line in step.get("run", "").splitlines()]
    return [line for line in lines if line.startswith("tqforge ")]


def asked_of_a_mac_owner() -> list[str]:
    text = (ROOT / ".github/ISSUE_TEMPLATE/mac.yml").read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip().startswith("tqforge ")]


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


def linted(path: Path, schema: str) -> int:
    """Check a file against GitHub's schema, which the linter contains."""
    return CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{schema}", str(path)]).exit_code


@pytest.mark.parametrize("name", SCHEMAS)
def test_github_accepts_the_file(name: str) -> None:
    assert linted(ROOT / name, SCHEMAS[name]) == 0


@pytest.mark.parametrize("old", ["runs-on:", "steps:", "uses:"])
def test_a_wrong_workflow_is_refused(old: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    text = MACOS.read_text(encoding="utf-8")
    assert old in text
    wrong.write_text(text.replace(old, f"x{old}", 1), encoding="utf-8")
    assert linted(wrong, "github-workflows") == 1


@pytest.mark.parametrize("line", [line for path in WORKFLOWS for line in command_lines(path)] + asked_of_a_mac_owner())
def test_every_command_line_is_valid(line: str) -> None:
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
    jobs = document(MACOS)["jobs"]
    assert all("macos" in job["runs-on"] for job in jobs.values())
    lines = command_lines(MACOS)
    assert lines.index("tqforge build --metal") < min(i for i, line in enumerate(lines) if "verify" in line)
    stages = {word for line in lines for word in parsed(line).params.get("stage") or []}
    assert {"ops", "placement", "device"} <= stages
    assert any("--quick" in line for line in lines)
    assert all("--metal" in line for line in lines if "verify" in line)


def test_the_reports_are_kept_whatever_happens() -> None:
    kept = [step for step in steps(MACOS) if "upload-artifact" in step.get("uses", "")]
    assert len(kept) == 1
    assert "always()" in kept[0]["if"]
    paths = kept[0]["with"]["path"].split()
    for line in command_lines(MACOS):
        out = parsed(line).params.get("out")
        assert out is None or any(Path(out).is_relative_to(path) for path in paths), line


def test_the_form_for_macs_asks_for_what_the_readme_says() -> None:
    assert set(asked_of_a_mac_owner()) > set(readme_lines())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    used = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert [line for line in used if not PINNED.search(line)] == []
    checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_one_action_has_one_version() -> None:
    used = {step["uses"] for path in WORKFLOWS for step in steps(path) if "uses" in step}
    assert len(used) == len({name.split("@")[0] for name in used})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_write_nothing_they_need_not(path: Path) -> None:
    read = document(path)
    assert read["permissions"] in ({}, {"contents": "read"})
    for name, job in read["jobs"].items():
        expected = WRITES.get((path.name, name))
        assert job.get("permissions", {"contents": "read"}) == (expected or {"contents": "read"}), name


def test_every_supported_python_is_tested() -> None:
    matrix = document(ROOT / ".github/workflows/ci.yml")["jobs"]["python"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [text.split(":: ")[-1] for text in project["classifiers"] if "Python :: 3." in text]
    assert matrix == named
    assert project["requires-python"].startswith(f">={named[0]}")


def test_only_tags_are_released() -> None:
    read = document(ROOT / ".github/workflows/release.yml")
    assert list(read[True]) == ["push"]  # YAML reads the key `on` as true
    assert list(read[True]["push"]) == ["tags"]
    assert read["jobs"]["publish"]["needs"] == "build"
