"""The operators of C. An unknown constant counts as 1."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

_SIZES = {"GGML_MAX_SRC": 10}


def number(value: Any) -> float:
    return value if isinstance(value, (bool, int, float)) else _SIZES.get(str(value), 1)


def _on(kind: Callable[[Any], Any], run: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Convert the operands of an operator."""
    return lambda left, right: run(kind(number(left)), kind(number(right)))


UNARY: dict[str, Callable[[Any], Any]] = {
    "!": operator.not_,
    "-": operator.neg,
    **dict.fromkeys(("+", "&", "*"), lambda value: value),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": _on(float, operator.lt),
    ">": _on(float, operator.gt),
    "<=": _on(float, operator.le),
    ">=": _on(float, operator.ge),
    "+": _on(number, operator.add),
    "-": _on(number, operator.sub),
    "*": _on(number, operator.mul),
    "/": lambda left, right: int(number(left) / number(right)),
    "%": _on(number, operator.mod),
    "&": _on(int, operator.and_),
    "|": _on(int, operator.or_),
    "^": _on(int, operator.xor),
    "<<": _on(int, operator.lshift),
    ">>": _on(int, operator.rshift),
}
