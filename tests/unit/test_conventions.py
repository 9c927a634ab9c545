"""Conventions that no linter checks. Import directions are contracts of import-linter in pyproject.toml."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import tqforge

PACKAGE = Path(tqforge.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
TESTS = Path(__file__).parents[1]
MAX_LINES, MAX_FUNCTION, MAX_MODULES = 250, 40, 10


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[ast.get_docstring(function) is not None :]
    return (function.end_lineno or function.lineno) - body[0].lineno + 1 if body else 0


def long_functions(text: str) -> dict[str, int]:
    """Return the functions whose body is above the limit, with its number of lines.

    Signature and docstring do not count: a command of Typer has one annotated parameter per option.
    """
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = {node.name: body_lines(node) for node in functions}
    return {name: count for name, count in lines.items() if count > MAX_FUNCTION}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert long_functions(text) == {}


def test_a_long_function_is_found() -> None:
    body = "    pass\n" * MAX_FUNCTION
    assert long_functions(f"def f(\n    x,\n):\n{body}    pass\n") == {"f": MAX_FUNCTION + 1}
    assert long_functions(f"def f(\n    x,\n):\n{body}") == {}


def test_folders_stay_small() -> None:
    modules = Counter(path.parent for path in FILES if path.name != "__init__.py")
    assert len(modules) > 10
    assert {str(folder.relative_to(PACKAGE)): n for folder, n in modules.items() if n > MAX_MODULES} == {}


def test_every_test_file_has_a_name_of_its_own() -> None:
    """pytest imports test files by their base name, and stops at the second file with the same one."""
    names = [path.name for path in TESTS.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_helpers_are_imported_from_support_alone() -> None:
    """Importing a test module from another one ties two subjects together."""
    tests = {path.stem for path in TESTS.rglob("test_*.py")}
    found = []
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found += [f"{path.relative_to(TESTS)} imports {name}" for name in names if name in tests]
    assert found == []
