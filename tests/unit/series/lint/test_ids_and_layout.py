"""What is read from headers: enums, block layouts and their arithmetic."""

from __future__ import annotations

import pytest
from lint_series import BLOCK, ENUM, FakeTree

from tqforge.series.lint import ids_and_layout
from tqforge.series.lint.ids_and_layout import block_layout, enum_values, new_values


@pytest.mark.parametrize(
    ("members", "values"),
    [
        ("A, B, C", {"A": 0, "B": 1, "C": 2}),
        ("A = 3, B, C = 9, D", {"A": 3, "B": 4, "C": 9, "D": 10}),
        ("A = 0x10, B", {"A": 16, "B": 17}),
        ("A = -1, B", {"A": -1, "B": 0}),
        ("A = 5, B = A, C", {"A": 5, "B": 5, "C": 6}),
        ("A, // B = 4,\n B, /* C,\n D */ E,", {"A": 0, "B": 1, "E": 2}),
        ("", {}),
    ],
)
def test_enum_values(members: str, values: dict[str, int]) -> None:
    assert enum_values(f"enum other {{ X }};\nenum ggml_type {{ {members} }};\n", "ggml_type") == values


def test_an_enum_that_is_not_there_has_no_values() -> None:
    assert enum_values("enum other { A };", "ggml_type") == {}


def test_new_values_leave_out_the_old_ones_and_the_count() -> None:
    before = FakeTree({ids_and_layout.HEADER: ENUM.format("GGML_TYPE_F32 = 50,", 51)})
    after = FakeTree({ids_and_layout.HEADER: ENUM.format("GGML_TYPE_F32 = 50, GGML_TYPE_NEW = 70,", 71)})
    assert new_values(before, after, "ggml_type") == {"GGML_TYPE_NEW": 70}
    assert new_values(after, after, "ggml_type") == {}
    assert new_values(FakeTree({}), FakeTree({}), "ggml_type") == {}


@pytest.mark.parametrize(
    ("fields", "layout"),
    [
        ("ggml_half d; uint8_t qs[QK_X / 2];", [("d", 2), ("qs", 16)]),
        ("ggml_half d;\n // scale\n int8_t qs[QK_X];", [("d", 2), ("qs", 32)]),
        ("uint8_t qs[3 * QK_X / 8 + 1];", [("qs", 13)]),
        ("uint8_t qs[QK_X - 2 * 3];", [("qs", 26)]),
        ("float d; ggml_half2 dm; uint32_t x[2];", [("d", 4), ("dm", 4), ("x", 8)]),
        ("struct inner d;", None),
        ("unknown_t d;", None),
        ("uint8_t qs[sizeof(int)];", None),
        ("union { ggml_half d; };", None),
    ],
)
def test_block_layout(fields: str, layout: list[tuple[str, int]] | None) -> None:
    lines = fields.replace("; ", ";\n")
    text = f"#define QK_X 32\ntypedef struct {{\n{lines}\n}} block_x;\n"
    assert block_layout(text, "x") == layout


def test_the_layout_of_the_type_itself() -> None:
    assert block_layout(BLOCK, "tq3_0") == [("d", 2), ("qs", 12)]
    assert block_layout(BLOCK, "q4_0") is None
