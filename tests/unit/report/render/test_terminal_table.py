from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from tqforge.report.render.terminal.table import Column, fitting, table

NAMES = Column("pair", [Text("q8_0/tq3_0"), Text("f16/f16")])
COLUMNS = [
    Column("bits", [Text("6"), Text("16")], drop=1),
    Column("cache", [Text("16.9 MiB"), Text("45.0 MiB")], drop=2),
    Column("verdict", [Text("safe"), Text("reference")]),
]


def shown(width: int, missing: str = "") -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width).print(table(NAMES, COLUMNS, width, missing=missing))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_a_table_looks_like_this() -> None:
    assert shown(80) == [
        "pair         bits      cache     verdict",
        "────────────────────────────────────────",
        "q8_0/tq3_0      6   16.9 MiB        safe",
        "f16/f16        16   45.0 MiB   reference",
    ]


@pytest.mark.parametrize(("width", "titles"), [(40, "bits cache verdict"), (39, "bits verdict"), (28, "verdict")])
def test_columns_are_dropped_by_rank_and_cells_stay_whole(width: int, titles: str) -> None:
    lines = shown(width)
    assert lines[0].split()[1:] == titles.split()
    assert "reference" in lines[3]
    assert max(map(len, lines)) <= width


def test_what_has_no_rank_stays_on_any_screen() -> None:
    assert [column.title for column in fitting(COLUMNS, 1)] == ["verdict"]


def test_dropped_columns_are_named_on_request() -> None:
    assert shown(39, "not shown:")[-1] == "not shown: cache"
    assert shown(80, "not shown:")[-1].startswith("f16/f16")


def test_a_wide_character_counts_as_two() -> None:
    assert Column("x", [Text("一二")]).width == 4
    assert Column("x", [Text("ab\nabcde")]).width == 5
