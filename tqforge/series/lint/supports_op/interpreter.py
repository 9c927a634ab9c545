"""Runs the functions that `csubset` reads.

llama.cpp's `supports_op` answers are such functions. Running them tells what they allow, however they are written. A
call to a function that is not given answers true: what depends on strides or on the device counts as allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tqforge.series.lint.supports_op.parser import CError, Node

_STEPS = 100_000
_CONSTANTS = {"NULL": None, "nullptr": None, "true": True, "false": False}


class _Leave(Exception):  # noqa: N818 - control flow, not an error
    def __init__(self, kind: str, value: Any = None) -> None:
        super().__init__(kind)
        self.kind, self.value = kind, value


class Machine:
    """Runs a parsed function. `functions` answers calls by name; an unknown call answers true."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.functions = functions
        self.steps = 0
        self._labels: dict[int, tuple[Node, dict[Any, int], int | None]] = {}

    def run(self, body: Node, names: Mapping[str, Any]) -> Any:
        """The value that the function returns. Raises CError."""
        scope = dict(names)
        self.steps = 0
        try:
            self.execute(body, scope)
        except _Leave as leave:
            return leave.value
        raise CError("the function ends without a return")

    def execute(self, node: Node, scope: dict[str, Any]) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise CError("the function does not end")
        match node.kind:
            case "block":
                for part in node.parts:
                    self.execute(part, scope)
            case "if":
                condition, then, other = node.parts
                self.execute(then if self.value(condition, scope) else other, scope)
            case "return":
                raise _Leave("return", self.value(node.parts[0], scope))
            case "break" | "continue":
                raise _Leave(node.kind)
            case "switch":
                self._switch(node, scope)
            case "for":
                self._for(node, scope)
            case "case" | "default":
                pass
            case _:
                self.value(node, scope)

    def _switch(self, node: Node, scope: dict[str, Any]) -> None:
        _, starts, default = self._labels.get(id(node)) or self._read_labels(node)
        start = starts.get(self.value(node.parts[0], scope), default)
        try:
            for part in node.parts[1].parts[start:] if start is not None else ():
                self.execute(part, scope)
        except _Leave as leave:
            if leave.kind != "break":
                raise

    def _read_labels(self, node: Node) -> tuple[Node, dict[Any, int], int | None]:
        """Where each constant of a switch leads, read once; the node is kept, so that its id stays its own."""
        parts = node.parts[1].parts
        labels = [(self.value(part.parts[0], {}), n) for n, part in enumerate(parts) if part.kind == "case"]
        default = next((n for n, part in enumerate(parts) if part.kind == "default"), None)
        found = self._labels[id(node)] = (node, dict(reversed(labels)), default)
        return found

    def _for(self, node: Node, scope: dict[str, Any]) -> None:
        begin, condition, step, body = node.parts
        self.execute(begin, scope)
        while self.value(condition, scope):
            try:
                self.execute(body, scope)
            except _Leave as leave:
                if leave.kind == "break":
                    return
                if leave.kind == "return":
                    raise
            self.value(step, scope)

    def value(self, node: Node, scope: dict[str, Any]) -> Any:
        """The value of an expression."""
        parts = node.parts
        match node.kind:
            case "number" | "text":
                found = parts[0]
            case "name":
                found = self._name(parts[0], scope)
            case "set":
                found = scope[parts[0]] = self.value(parts[1], scope)
            case "choose":
                found = self.value(parts[1 if self.value(parts[0], scope) else 2], scope)
            case "field":
                found = self._field(self.value(parts[0], scope), parts[1])
            case "item":
                found = self._item(self.value(parts[0], scope), self.value(parts[1], scope))
            case "call":
                found = self._call(node, scope)
            case "unary":
                found = self._unary(parts[0], self.value(parts[1], scope))
            case _:
                found = self._binary(node, scope)
        return found

    @staticmethod
    def _name(name: str, scope: dict[str, Any]) -> Any:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        return scope.get(name, name)  # a constant stands for itself

    @staticmethod
    def _field(value: Any, name: str) -> Any:
        if value is None:
            raise CError(f"->{name} of NULL")
        return value.get(name, True) if isinstance(value, Mapping) else True

    @staticmethod
    def _item(value: Any, place: Any) -> Any:
        return value[place] if isinstance(value, list) else True

    def _call(self, node: Node, scope: dict[str, Any]) -> Any:
        arguments = [self.value(part, scope) for part in node.parts[1]]
        function = self.functions.get(str(node.parts[0].parts[0]))
        return function(*arguments) if function else True

    @staticmethod
    def _unary(sign: str, value: Any) -> Any:
        if sign == "!":
            return not value
        return -value if sign == "-" else value

    def _binary(self, node: Node, scope: dict[str, Any]) -> Any:
        sign, first, second = node.parts
        left = self.value(first, scope)
        if sign == "&&":
            return bool(left) and bool(self.value(second, scope))
        if sign == "||":
            return bool(left) or bool(self.value(second, scope))
        return _OPERATIONS[sign](left, self.value(second, scope))


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: _number(a) < _number(b),
    ">": lambda a, b: _number(a) > _number(b),
    "<=": lambda a, b: _number(a) <= _number(b),
    ">=": lambda a, b: _number(a) >= _number(b),
    "+": lambda a, b: _number(a) + _number(b),
    "-": lambda a, b: _number(a) - _number(b),
    "*": lambda a, b: _number(a) * _number(b),
    "/": lambda a, b: int(_number(a) / _number(b)),
    "%": lambda a, b: _number(a) % _number(b),
    "&": lambda a, b: int(_number(a)) & int(_number(b)),
    "|": lambda a, b: int(_number(a)) | int(_number(b)),
    "^": lambda a, b: int(_number(a)) ^ int(_number(b)),
    "<<": lambda a, b: int(_number(a)) << int(_number(b)),
    ">>": lambda a, b: int(_number(a)) >> int(_number(b)),
}


def _number(value: Any) -> float | int:
    if isinstance(value, (bool, int, float)):
        return value
    return {"GGML_MAX_SRC": 10}.get(str(value), 1)
