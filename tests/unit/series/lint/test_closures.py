"""C functions that are run: what they return, and what is refused with its line."""

from __future__ import annotations

import pytest

from tqforge.series.lint.supports_op.closures import load
from tqforge.series.lint.supports_op.syntax import CError, body, text

VALUES = {
    "loop": ("int s = 0; for (int i = 0; i < 4; i++) { if (i == a) { continue; } s = s + i; } return s;", 4),
    "break": ("int s = 0; for (int i = 0; i < 9; ++i) { if (i == a + 1) { break; } s = i; } return s;", 2),
    "return in a loop": ("for (int i = 0; ; i++) { if (i == 7) { return i; } }", 7),
    "switch": ("switch (a) { case 1: return 5; case 2: case 3: break; default: return 7; } return 9 - -a;", 11),
    "default": ("switch (a) { case 1: return 5; default: return 7; }", 7),
    "fall through": ("int s = 0; switch (a) { case 2: s = 4; case 3: s = s + 1; break; case 4: s = 9; } return s;", 5),
    "first of two labels": ("switch (a) { case 2: return 1; case 2: return 3; } return 0;", 1),
    "no label": ("switch (a) { case 1: return 5; } return 6;", 6),
    "cast and choice": ("const size_t b = (size_t) a % 2; return !b ? 10 : a >= 2 && g(a);", 10),
    "else": ("if (a > 2) { return 1; } else if (a > 1) { return 3; } else { return 4; }", 3),
    "without braces": ("if (a > 2) return 1; else return 4;", 4),
    "comments": ("/* one */ return /* two */ a; // three", 2),
    "uninitialised": ("int b, c = 3; return b + c;", 3),
    "hexadecimal": ("return 0x10 + 1u;", 17),
    "float": ("return a * 1.5f;", 3.0),
    "shift": ("return a << 3 | 1;", 17),
    "division towards zero": ("return -7 / 2;", -3),
    "string": ('return "x" == "x";', True),
    "null": ("return p == NULL && !nullptr;", True),
    "unknown constant": ("return GGML_MAX_SRC + UNKNOWN;", 11),
    "unknown function": ("return unknown(a, p);", True),
    "field": ("return t->ne[1] + t->unknown;", 9),
    "address": ("return *(&a);", 2),
    "decrement": ("a--; return a;", 1),
}


def run(code: str) -> object:
    arguments = {"a": 2, "p": None, "t": {"ne": [4, 8]}}
    return load(f"int f(int a) {{\n{code}\n}}\n", "f", {"g": lambda a: a + 1})(arguments)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    code, value = VALUES[name]
    assert run(code) == value


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("a = 1;", "f ends without a return"),
        ("for (int i = 1; i; i) { }", "line 2: the loop does not end"),
        ("return ~a;", "line 2: cannot run '~a'"),
        ("\na += 2; return a;", "line 3: cannot run 'a \\+= 2'"),
        ("t->x = 1; return a;", "cannot run 't->x = 1'"),
        ("while (a) { }", r"line 2: cannot run 'while \(a\)"),
        ("return { 1, 2 };", "cannot run"),
        ("return sizeof(a);", r"cannot run 'sizeof\(a\)'"),
        ("return p->ne;", "line 2: ->ne of NULL"),
    ],
)
def test_what_cannot_be_run_is_named_with_its_line(code: str, message: str) -> None:
    with pytest.raises(CError, match=message):
        run(code)


def test_what_cannot_be_run_does_no_harm_where_it_is_not_reached() -> None:
    assert run("if (a == 3) { while (a) { } return { 1 }; } return 5;") == 5


def test_a_function_is_found_by_its_name() -> None:
    declared = "// int f() {}\nstatic struct x * g(void);\n@end\n"
    source = declared + "static struct x * g(void) { return 1; }\nint f() { return 2; }"
    assert text(body(source, "g")) == "{ return 1; }"
    assert load(source, "f")({}) == 2
    for name in ("h", "x"):
        with pytest.raises(CError, match=f"there is no function {name}"):
            body(source, name)


def test_arguments_are_not_changed() -> None:
    arguments = {"a": 2}
    assert load("int f(int a) { a = 5; return a; }", "f")(arguments) == 5
    assert arguments == {"a": 2}
