"""cli -> commands -> domain -> adapters; nothing points back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tqforge

PACKAGE = Path(tqforge.__file__).parent
RANK = {"__main__": 5, "cli": 4, "commands": 3, "domain": 2, "adapters": 1}
#: Shared by all layers; they stand on nothing above adapters.
SHARED = {"errors": 0, "resources": 1, "workspace": 2, "context": 2}
#: Values that adapters may speak in.
VALUES = {"tqforge.domain.model"}
FILES = sorted(PACKAGE.rglob("*.py"))


def _rank(module: str) -> int:
    part = module.split(".")[1] if "." in module else ""
    return RANK.get(part, SHARED.get(part, 0))


def _imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name for name in found if name.startswith("tqforge.")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downward(path: Path) -> None:
    me = ".".join(("tqforge", *path.relative_to(PACKAGE).with_suffix("").parts))
    upward = [name for name in _imports(path) if _rank(name) > _rank(me)]
    assert not [name for name in upward if not any(f"{name}.".startswith(f"{value}.") for value in VALUES)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 10


def test_every_test_file_has_a_name_of_its_own() -> None:
    """pytest imports test files by their last name alone, and a whole run stops at the second of two."""
    names = [path.name for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
