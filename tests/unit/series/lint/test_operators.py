"""The operators of C on numbers, constants and unknown names."""

from __future__ import annotations

import pytest

from tqforge.series.lint.supports_op.operators import BINARY, UNARY, number


@pytest.mark.parametrize(
    ("sign", "left", "right", "value"),
    [
        ("==", "GGML_TYPE_F16", "GGML_TYPE_F16", True),
        ("==", "GGML_TYPE_F16", "GGML_TYPE_F32", False),
        ("!=", None, None, False),
        ("<", 1, 2, True),
        ("<", 2, 2, False),
        (">", 3, 2, True),
        ("<=", 2, 2, True),
        (">=", 1, 2, False),
        ("+", 1, 2, 3),
        ("-", 1, 2, -1),
        ("*", 3, 4, 12),
        ("/", 7, 2, 3),
        ("/", -7, 2, -3),
        ("%", 7, 4, 3),
        ("&", 6, 3, 2),
        ("|", 6, 3, 7),
        ("^", 6, 3, 5),
        ("<<", 3, 2, 12),
        (">>", 12, 2, 3),
        ("<", "GGML_MAX_SRC", 10, False),
        ("<=", "GGML_MAX_SRC", 10, True),
        ("+", "SOME_CONSTANT", 1, 2),
    ],
)
def test_binary(sign: str, left: object, right: object, value: object) -> None:
    assert BINARY[sign](left, right) == value


@pytest.mark.parametrize(("sign", "value"), [("!", False), ("-", -3), ("+", 3), ("&", 3), ("*", 3)])
def test_unary(sign: str, value: object) -> None:
    assert UNARY[sign](3) == value


@pytest.mark.parametrize(("value", "expected"), [(True, 1), (2.5, 2.5), ("GGML_MAX_SRC", 10), ("X", 1), (None, 1)])
def test_an_unknown_constant_counts_as_one(value: object, expected: float) -> None:
    assert number(value) == expected
