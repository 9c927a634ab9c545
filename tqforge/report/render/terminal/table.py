"""Build terminal tables in one style; drop columns instead of cutting cells when the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

#: Blanks between two columns.
_GAP = 3


@dataclass(frozen=True)
class Column:
    """A column of cells. The highest `drop` is left out first; a column with 0 always stays."""

    title: str
    cells: Sequence[Text]
    drop: int = 0

    @property
    def width(self) -> int:
        return max(map(_width, (Text(self.title), *self.cells)))


def table(names: Column, columns: Sequence[Column], width: int, *, missing: str = "") -> Table:
    """One row per name, with as many columns as fit into `width`; `missing` announces those that do not."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="dim")
    made.add_column(Text(names.title), overflow="fold")
    shown = fitting(columns, width - names.width)
    for column in shown:
        made.add_column(Text(column.title), justify="right", no_wrap=True)
    if missing and len(shown) < len(columns):
        left_out = ", ".join(column.title for column in columns if column not in shown)
        made.caption, made.caption_justify = Text(f"{missing} {left_out}", "dim"), "left"
    for row, name in enumerate(names.cells):
        made.add_row(name, *(column.cells[row] for column in shown))
    return made


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns that fit beside the names, in their order."""
    kept = list(columns)
    while sum(column.width + _GAP for column in kept) > width and any(column.drop for column in kept):
        kept.remove(max(kept, key=lambda column: column.drop))
    return kept


def _width(cell: Text) -> int:
    return max((line.cell_len for line in cell.split("\n")), default=0)
