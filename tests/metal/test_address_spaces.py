"""The syntax-only pass over the kernels with their address spaces: clean on the tree, and not blind."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from emulator_tools import METAL, Tree, tool

spaces = tool("address_spaces")


def parse(compiler: str, tree: Tree, folder: Path, source: str, *options: str) -> tuple[str, str]:
    """Run clang on one prepared source. Return its output and its messages."""
    include = METAL / "include/address_spaces"
    folders = [include, folder, tree.metal, tree.metal.parent]
    argv = [compiler, *spaces.CLANG_OPTIONS, "-include", include / "metal_stdlib", *(f"-I{f}" for f in folders)]
    done = subprocess.run([*argv, folder / f"{source}.metal", *options], capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, f"clang ended with {done.returncode}: {done.stderr[-400:]}"
    assert done.returncode == 0 or re.search(r"\berror: ", done.stderr), "clang failed without an error"
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def instantiated(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instantiated")
    spaces.prepare_tree(tree.metal / "kernels", folder, True)
    return folder


@pytest.fixture(scope="module")
def templates(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates")
    spaces.prepare_tree(tree.metal / "kernels", folder, False)
    return folder


def assert_right_spaces(compiler: str, tree: Tree, instantiated: Path, source: str) -> None:
    _, messages = parse(compiler, tree, instantiated, source)
    assert spaces.errors(messages) == [], source


#: Upstream's own, and Metal takes them: an array as a parameter, and functions as template arguments.
ACCEPTED = {
    ("mul_mv.metal", "float sumf[NR0],"),
    ("mul_mv.metal", "template<kernel_mul_mv_disp_t disp_fn>"),
    ("mul_mv.metal", "template<kernel_mul_mv2_disp_t disp_fn>"),
    ("mul_mv.metal", "template<mul_mv_disp_fn_t disp_fn>"),
}


def without_space(compiler: str, tree: Tree, templates: Path, source: str) -> set[tuple[str, str]]:
    """Return file and line of every pointer without an address space."""
    dump, _ = parse(compiler, tree, templates, source, "-Xclang", "-ast-dump", "-fno-color-diagnostics")
    assert "TranslationUnitDecl" in dump
    assert f"{tree.metal}/kernels/" in dump, "the dump does not reach the kernels"
    kernels = tree.metal / "kernels"
    found = spaces.unqualified(dump.splitlines(), kernels)
    return {(u.file, (kernels / u.file).read_text(encoding="utf-8").splitlines()[u.line - 1].strip()) for u in found}


def test_no_pointer_of_a_wrong_space(compiler: str, tree: Tree, instantiated: Path) -> None:
    for source in sorted(tool("sources").kernel_sources(tree.metal)):
        assert_right_spaces(compiler, tree, instantiated, source)


def test_a_missing_header_is_an_error(compiler: str, tree: Tree, instantiated: Path) -> None:
    (instantiated / "lost.metal").write_text('#include "no_such_header.h"\n', encoding="utf-8")
    _, messages = parse(compiler, tree, instantiated, "lost")
    (instantiated / "lost.metal").unlink()
    assert any("no_such_header.h" in error for error in spaces.errors(messages))


def test_no_pointer_without_a_space(compiler: str, tree: Tree, templates: Path) -> None:
    sources = tool("sources").kernel_sources(tree.metal)
    found = set[tuple[str, str]]().union(*(without_space(compiler, tree, templates, s) for s in sorted(sources)))
    assert found == ACCEPTED


PROBE = """#include "common.h"
static inline float taking_thread(thread const float * v) { return v[0]; }
%s
kernel void probe(device const float * in, device float * out, threadgroup float * shared) {
    thread float4 v;
    %s
}
"""

WRONG = [
    "taking_thread(in);",
    "taking_thread(shared);",
    "device float * p = shared;",
    "v[0] = ((threadgroup float *) in)[0];",
    "thread float4 & r = *(device float4 *) out;",
]

MISSING = [
    ("static inline float f(float * v) { return v[0]; }", ""),
    ("static inline float f(const float4 & v) { return v[0]; }", ""),
    ("template <typename T> void f(device const T * x, thread T & y) { const T * p = x; y = p[0]; }", ""),
    ("template <typename T> void f(device const T * x, thread T & y) { y = *(const T *) x; }", ""),
    ("template <typename T, void (*f)(const T *, short)> void g(device const T * x) { f(x, 1); }", ""),
    ("struct s { float * p; };", ""),
    ("", "float * p = &v[0];"),
]


def probe(compiler: str, tree: Tree, folder: Path, *parts: str) -> tuple[list[str], list[Any]]:
    kernels = tree.metal / "kernels"
    text = f'#line 1 "{kernels}/probe.metal"\n' + spaces.prepare(PROBE % parts)
    (folder / "probe.metal").write_text(text, encoding="utf-8")
    dump, messages = parse(compiler, tree, folder, "probe", "-Xclang", "-ast-dump", "-fno-color-diagnostics")
    return spaces.errors(messages), [
        u for u in spaces.unqualified(dump.splitlines(), kernels) if u.file == "probe.metal"
    ]


def test_a_probe_without_fault(compiler: str, tree: Tree, templates: Path) -> None:
    assert probe(compiler, tree, templates, "", "out[0] = taking_thread(&v.x) + in[0] + shared[0];") == ([], [])


@pytest.mark.parametrize("statement", WRONG)
def test_a_wrong_space_is_refused(compiler: str, tree: Tree, templates: Path, statement: str) -> None:
    errors, _ = probe(compiler, tree, templates, "", statement)
    assert any("probe.metal:6:" in e for e in errors), errors


@pytest.mark.parametrize(("declaration", "statement"), MISSING)
def test_a_missing_space_is_found(compiler: str, tree: Tree, templates: Path, declaration: str, statement: str) -> None:
    _, found = probe(compiler, tree, templates, declaration, statement)
    assert {u.line for u in found} == {3 if declaration else 6}
