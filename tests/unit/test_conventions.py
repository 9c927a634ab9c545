"""Conventions that no linter checks. Import directions are contracts of import-linter in pyproject.toml."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import tqforge

PACKAGE = Path(tqforge.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_folders_stay_small() -> None:
    modules = Counter(path.parent for path in FILES if path.name != "__init__.py")
    assert len(modules) > 10
    assert {str(folder): count for folder, count in modules.items() if count > 11} == {}


def test_every_test_file_has_a_name_of_its_own() -> None:
    """pytest imports test files by their last name alone, and a whole run stops at the second of two."""
    names = [path.name for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
