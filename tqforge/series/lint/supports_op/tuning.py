"""Find the variants of the vec attention kernels that Metal's dispatch code can choose: all that `fa_vec_pick` returns.

The rows of its table and its fixed answers are read from the text. A variant is part of a kernel's name unless it is
the one of `fa_vec_baseline_ne`, which is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tqforge.series.lint.supports_op import closures, syntax
from tqforge.series.lint.supports_op.syntax import CError

_PICK, _BASELINE = "fa_vec_pick", "fa_vec_baseline_ne"
_TABLE = re.compile(r"\bfa_vec_tuned_table\[\] = \{(.*?)\n\};", re.S)
_ROW = re.compile(r"\{ *\{ *\d+, *(\w+), *(\d+), *(\d+), *-?\d+, *-?\d+ *\}, *\{ *(\d+), *(\d+) *\} *\}")
_TYPES = re.compile(r"\bfa_vec_type_table\[\] = \{(.*?)\n\};", re.S)  # types with one variant for everything
_TYPE = re.compile(r"\{ *(\w+), *\{ *(\d+), *(\d+) *\} *\}")
_FIXED = re.compile(r"if \(dtype == (\w+)\) \{\s*return \{ *(\d+), *(\d+) *\};")


@dataclass(frozen=True)
class Choice:
    """Queries per threadgroup and elements per lane chosen for a type, at one pair of head sizes or at all."""

    kind: str
    sizes: tuple[int, int] | None
    variant: tuple[int, int]


def choices(tuning: str) -> Iterator[Choice]:
    """Yield every variant that the text may choose, for any GPU and any length. Raises CError for unknown text."""
    table, body = _TABLE.search(tuning), syntax.text(syntax.body(tuning, _PICK))
    rows = _ROW.findall(table[1]) if table else []
    fixed = _FIXED.findall(body)
    if table is None or len(rows) != table[1].count("GGML_TYPE_") or len(fixed) != len(re.findall(r"return \{", body)):
        raise CError(f"{_PICK} or its table has an unknown form")
    for kind, dk, dv, q, ne in rows:
        yield Choice(kind, (int(dk), int(dv)), (int(q), int(ne)))
    for kind, q, ne in fixed:
        yield Choice(kind, None, (int(q), int(ne)))


class Variants:
    """The variants that need kernels. A tree without tuning has none."""

    def __init__(self, tuning: str = "", dispatch: str = "") -> None:
        self._choices = tuple(choices(tuning)) if tuning else ()
        self._baseline = closures.load(tuning, _BASELINE) if tuning else None
        types = _TYPES.search(tuning)
        self._only = {kind: (int(q), int(ne)) for kind, q, ne in _TYPE.findall(types[1])} if types else {}
        asked = re.search(rf"\b{_PICK}\([^;]*?->src\[([12])\]->type", dispatch)
        if tuning and asked is None:
            raise CError(f"the dispatch code does not call {_PICK} with the type of K or of V")
        self._operand = int(asked[1]) if asked else 1

    def suffixes(self, types: tuple[str, str], dk: int, dv: int) -> list[str]:
        """Return what the kernel names end with for these types of K and V; the baseline's name has no suffix."""
        if self._baseline is None:
            return [""]
        kind = types[self._operand - 1]
        plain = (1, self._baseline({"dk": dk, "dv": dv}))
        if kind in self._only:
            chosen = {self._only[kind]}
        else:
            chosen = {plain} | {c.variant for c in self._choices if c.kind == kind and c.sizes in (None, (dk, dv))}
        return sorted("" if (q, ne) == plain else f"_q{q}_ne{ne}" for q, ne in chosen)
