"""Find functions in C text with tree-sitter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import tree_sitter_c
from tree_sitter import Language, Node, Parser


class CError(ValueError):
    """C code that is missing or cannot be run."""


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_c.language()))


def body(source: str, name: str) -> Node:
    """Return the body of a function. Raises CError when the text does not define it."""
    for found in _functions(_parser().parse(source.encode()).root_node):
        block = found.child_by_field_name("body")
        if block is not None and identifier(found.child_by_field_name("declarator")) == name:
            return block
    raise CError(f"there is no function {name}")


def _functions(node: Node) -> Iterator[Node]:
    if node.type == "function_definition":
        yield node
    for child in node.named_children:
        yield from _functions(child)


def identifier(node: Node | None) -> str:
    """Return the name inside a declarator, or an empty string."""
    while node is not None and node.type != "identifier":
        node = node.child_by_field_name("declarator")
    return text(node)


def text(node: Node | None) -> str:
    return node.text.decode() if node is not None and node.text else ""


def place(node: Node) -> str:
    return f"line {node.start_point.row + 1}"


def inside(node: Node) -> list[Node]:
    """Return the parts of a node without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def is_broken(node: Node) -> bool:
    """Return whether tree-sitter did not understand a part of the node."""
    return any(child.is_error or child.is_missing for child in node.children)


def labelled(items: Iterable[Node]) -> Iterator[Node]:
    """Yield the labels of a switch and the statements below them, which tree-sitter nests, as neighbours."""
    for item in items:
        yield item
        if item.type == "case_statement":
            label = item.child_by_field_name("value")
            yield from labelled(child for child in inside(item) if child != label)
