"""Run a C function: each node of its syntax becomes a Python closure.

llama.cpp's `supports_op` answers are functions made of conditions, switches, small loops and returns. Running them
shows what they allow, however they are written. A call to a function that is not given returns true: what depends on
strides or on the device counts as allowed. Unknown syntax is an error with its line, but only where it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tree_sitter import Node

from tqforge.series.lint.supports_op import syntax
from tqforge.series.lint.supports_op.operators import BINARY, UNARY, number
from tqforge.series.lint.supports_op.syntax import CError

Scope = dict[str, Any]
Expression = Callable[[Scope], Any]
Leave = tuple[str, Any]  # break, continue or return, and the value
Statement = Callable[[Scope], Leave | None]
Functions = Mapping[str, Callable[..., Any]]
CFunction = Callable[[Mapping[str, Any]], Any]
_STEPS = 100_000
_DEFAULT = object()
_CONSTANTS = {"NULL": None, "nullptr": None, "true": True, "false": False}


def load(source: str, name: str, functions: Functions | None = None) -> CFunction:
    """Return a C function that takes its arguments by name; `functions` answer its calls. Raises CError."""
    body = _Compiler(functions or {}).statement(syntax.body(source, name))

    def run(arguments: Mapping[str, Any]) -> Any:
        left = body(dict(arguments))
        if left is None:
            raise CError(f"{name} ends without a return")
        return left[1]

    return run


def _sequence(parts: Sequence[Statement], scope: Scope) -> Leave | None:
    for part in parts:
        if left := part(scope):
            return left
    return None


class _Compiler:
    """Turns nodes into closures. `functions` answer calls by name."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions

    def _compile(self, node: Node, kinds: Mapping[str, Callable[[_Compiler, Node], Expression]]) -> Expression:
        if node.type in kinds and (node.type == "compound_statement" or not syntax.is_broken(node)):
            return kinds[node.type](self, node)
        return self.fail(node)

    @staticmethod
    def fail(node: Node) -> Expression:
        message = f"{syntax.place(node)}: cannot run '{' '.join(syntax.text(node).split())[:60]}'"

        def run(_: Scope) -> Any:
            raise CError(message)

        return run

    def statement(self, node: Node | None) -> Statement:
        """Compile a statement; a missing one, as an absent `else`, does nothing."""
        return self._compile(node, _STATEMENTS) if node is not None else lambda _: None

    def value(self, node: Node | None, missing: int = 0) -> Expression:
        """Compile an expression; a missing one has the value `missing`."""
        return self._compile(node, _EXPRESSIONS) if node is not None else lambda _: missing

    def _fields(self, node: Node, *names: str) -> Iterator[Expression]:
        return (self.value(node.child_by_field_name(name)) for name in names)

    def block(self, node: Node) -> Statement:
        parts = [self.statement(child) for child in syntax.inside(node)]
        return lambda scope: _sequence(parts, scope)

    def only(self, node: Node) -> Expression:
        """Compile the expression that a node wraps."""
        return self.value(next(iter(syntax.inside(node)), None))

    def ignore(self, node: Node) -> Statement:
        value = self.only(node)
        return lambda scope: (value(scope), None)[1]

    def condition(self, node: Node) -> Statement:
        [test] = self._fields(node, "condition")
        then, other = (self.statement(node.child_by_field_name(name)) for name in ("consequence", "alternative"))
        return lambda scope: (then if test(scope) else other)(scope)

    def give_back(self, node: Node) -> Statement:
        value = self.only(node)
        return lambda scope: ("return", value(scope))

    def switch(self, node: Node) -> Statement:
        [value] = self._fields(node, "condition")
        body = node.child_by_field_name("body")
        parts: list[Statement] = []
        starts: dict[Any, int] = {}
        for item in syntax.labelled(syntax.inside(body) if body is not None else ()):
            if item.type == "case_statement":
                label = item.child_by_field_name("value")
                starts.setdefault(_DEFAULT if label is None else self.value(label)({}), len(parts))
            else:
                parts.append(self.statement(item))

        def run(scope: Scope) -> Leave | None:
            start = starts.get(value(scope), starts.get(_DEFAULT, len(parts)))
            left = _sequence(parts[start:], scope)
            return None if left and left[0] == "break" else left

        return run

    def loop(self, node: Node) -> Statement:
        first = node.child_by_field_name("initializer")
        declared = first is not None and first.type == "declaration"
        begin = self.statement(first) if declared else self.value(first)
        test = self.value(node.child_by_field_name("condition"), 1)
        step = self.value(node.child_by_field_name("update"))
        body = self.statement(node.child_by_field_name("body"))

        def run(scope: Scope) -> Leave | None:
            begin(scope)
            for _ in range(_STEPS):
                if not test(scope):
                    return None
                if (left := body(scope)) and left[0] != "continue":
                    return left if left[0] == "return" else None
                step(scope)
            raise CError(f"{syntax.place(node)}: the loop does not end")

        return run

    def declaration(self, node: Node) -> Statement:
        items = node.children_by_field_name("declarator")
        found = [(syntax.identifier(item), self.value(item.child_by_field_name("value"))) for item in items]

        def run(scope: Scope) -> None:
            for name, value in found:
                scope[name] = value(scope)

        return run

    def literal(self, node: Node) -> Expression:
        text = syntax.text(node).lower()
        try:
            number: float = int(text.rstrip("ul"), 0)
        except ValueError:
            number = float(text.rstrip("f"))
        return lambda _: number

    def name(self, node: Node) -> Expression:
        text = syntax.text(node)
        return lambda scope: scope[text] if text in scope else _CONSTANTS.get(text, text)

    def call(self, node: Node) -> Expression:
        arguments = node.child_by_field_name("arguments")
        values = [self.value(item) for item in (syntax.inside(arguments) if arguments is not None else ())]
        function = self.functions.get(syntax.text(node.child_by_field_name("function")))
        return lambda scope: function(*[value(scope) for value in values]) if function else True

    def assignment(self, node: Node) -> Expression:
        name = syntax.text(node.child_by_field_name("left") or node.child_by_field_name("argument"))
        sign = syntax.text(node.child_by_field_name("operator"))
        right, step = self.value(node.child_by_field_name("right")), {"++": 1, "--": -1}.get(sign)
        if not name.isidentifier() or (step is None and sign != "="):
            return self.fail(node)

        def run(scope: Scope) -> Any:
            scope[name] = right(scope) if step is None else number(scope.get(name)) + step
            return scope[name]

        return run

    def choice(self, node: Node) -> Expression:
        test, then, other = self._fields(node, "condition", "consequence", "alternative")
        return lambda scope: (then if test(scope) else other)(scope)

    def field(self, node: Node) -> Expression:
        [argument], name = self._fields(node, "argument"), syntax.text(node.child_by_field_name("field"))

        def run(scope: Scope) -> Any:
            if (value := argument(scope)) is None:
                raise CError(f"{syntax.place(node)}: ->{name} of NULL")
            return value.get(name, True) if isinstance(value, Mapping) else True

        return run

    def item(self, node: Node) -> Expression:
        argument, index = self._fields(node, "argument", "index")

        def run(scope: Scope) -> Any:
            value = argument(scope)
            return value[index(scope)] if isinstance(value, list) else True

        return run

    def unary(self, node: Node) -> Expression:
        [argument] = self._fields(node, "argument")
        run = UNARY.get(syntax.text(node.child_by_field_name("operator")))
        return (lambda scope: run(argument(scope))) if run else self.fail(node)

    def binary(self, node: Node) -> Expression:
        left, right = self._fields(node, "left", "right")
        sign = syntax.text(node.child_by_field_name("operator"))
        if sign == "&&":
            return lambda scope: bool(left(scope)) and bool(right(scope))
        if sign == "||":
            return lambda scope: bool(left(scope)) or bool(right(scope))
        run = BINARY[sign]
        return lambda scope: run(left(scope), right(scope))


_STATEMENTS: dict[str, Callable[[_Compiler, Node], Statement]] = {
    "compound_statement": _Compiler.block,
    "else_clause": _Compiler.block,
    "if_statement": _Compiler.condition,
    "switch_statement": _Compiler.switch,
    "for_statement": _Compiler.loop,
    "return_statement": _Compiler.give_back,
    "break_statement": lambda *_: lambda _: ("break", None),
    "continue_statement": lambda *_: lambda _: ("continue", None),
    "declaration": _Compiler.declaration,
    "expression_statement": _Compiler.ignore,
}
_EXPRESSIONS: dict[str, Callable[[_Compiler, Node], Expression]] = {
    "parenthesized_expression": _Compiler.only,
    "cast_expression": lambda compiler, node: compiler.value(node.child_by_field_name("value")),
    "number_literal": _Compiler.literal,
    "string_literal": lambda _, node: lambda _: syntax.text(node),
    **dict.fromkeys(("identifier", "true", "false", "null"), _Compiler.name),
    "call_expression": _Compiler.call,
    "assignment_expression": _Compiler.assignment,
    "update_expression": _Compiler.assignment,
    "conditional_expression": _Compiler.choice,
    "field_expression": _Compiler.field,
    "subscript_expression": _Compiler.item,
    "unary_expression": _Compiler.unary,
    "pointer_expression": _Compiler.unary,
    "binary_expression": _Compiler.binary,
}
