"""Versions of development tools that are named in more than one file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tqforge.core import emulator

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))


def pinned() -> dict[str, str]:
    extras = PROJECT["optional-dependencies"]
    return dict(line.split("==") for line in (*extras["dev"], *extras["actions"]) if "==" in line)


def hooks() -> list[tuple[str, str]]:
    return [
        (hook["id"], requirement)
        for repo in HOOKS["repos"]
        for hook in repo["hooks"]
        for requirement in hook.get("additional_dependencies", [])
    ]


@pytest.mark.parametrize(("hook", "requirement"), hooks())
def test_a_hook_uses_the_version_of_the_gate(hook: str, requirement: str) -> None:
    name, version = requirement.split("==")
    assert pinned()[name] == version, hook


def test_hooks_come_from_packages_alone() -> None:
    assert {repo["repo"] for repo in HOOKS["repos"]} == {"local"}


def test_the_formatter_is_that_of_the_compiler() -> None:
    assert pinned()["clang-format"].split(".")[0] == emulator.CLANG_VERSION


def test_the_changelog_knows_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in text
    released = [line for line in text.splitlines() if line.startswith("## [") and "Unreleased" not in line]
    assert not released or f"[{PROJECT['version']}]" in released[0]
