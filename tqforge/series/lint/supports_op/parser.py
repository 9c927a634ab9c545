"""Enough of C to read a function made of conditions, switches, small loops and returns; `cmachine` runs it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(//[^\n]*|/\*.*?\*/|#[^\n]*)|(\d+\.\d*f?|\d+)u?l*|([A-Za-z_]\w*)|(\"[^\"]*\")|"
    r"(->|\+\+|--|&&|\|\||[<>=!+*/-]=|<<|>>|[-+*/%!<>=&|^~?:;,.(){}\[\]]))",
    re.S,
)
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_TYPE_WORDS = {"const", "enum", "struct", "static", "unsigned", "bool", "int", "size_t", "float", "char", "auto"}


class CError(ValueError):
    """Text that this subset does not know."""


def tokens(text: str) -> list[str]:
    """The words of C text, comments left out."""
    found, place = [], 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if not match:
            raise CError(f"cannot read {text[place : place + 20]!r}")
        if match[1] is None:
            found.append(match[0].strip())
        place = match.end()
    return found


def function_body(text: str, name: str) -> str:
    """The text between the outer braces of a function's definition. Raises CError."""
    match = re.search(rf"^[\w *]*\b{name}\s*\([^;{{]*\)\s*\{{", text, re.M)
    end = text.find("\n}", match.end()) if match else -1
    if not match or end < 0:
        raise CError(f"there is no function {name}")
    return text[match.end() : end]


@dataclass(frozen=True)
class Node:
    """One statement or expression: its kind and its parts."""

    kind: str
    parts: tuple[Any, ...] = ()


class Parser:
    """Recursive descent over tokens."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.place = words, 0

    def peek(self, ahead: int = 0) -> str:
        return self.words[self.place + ahead] if self.place + ahead < len(self.words) else ""

    def take(self, wanted: str = "") -> str:
        word = self.peek()
        if not word or (wanted and word != wanted):
            raise CError(f"expected {wanted or 'more'}, found {word!r}")
        self.place += 1
        return word

    def block(self, until: str = "") -> Node:
        found = []
        while self.peek() != until:
            found.append(self.statement())
        return Node("block", tuple(found))

    def statement(self) -> Node:
        word = self.peek()
        simple = {"{": self._braces, "if": self._if, "switch": self._switch, "for": self._for, "return": self._return}
        if word in simple:
            return simple[word]()
        if word == "case":
            self.take()
            label = self.expression()
            self.take(":")
            return Node("case", (label,))
        if word in ("default", "break", "continue"):
            self.take()
            self.take(":" if word == "default" else ";")
            return Node(word)
        if word == ";":
            self.take()
            return Node("block")
        found = self._declaration() if self._is_declaration() else self.expression()
        self.take(";")
        return found

    def _braces(self) -> Node:
        self.take("{")
        found = self.block("}")
        self.take("}")
        return found

    def _condition(self) -> Node:
        self.take("(")
        found = self.expression()
        self.take(")")
        return found

    def _if(self) -> Node:
        self.take("if")
        condition, then = self._condition(), self.statement()
        other = Node("block")
        if self.peek() == "else":
            self.take()
            other = self.statement()
        return Node("if", (condition, then, other))

    def _switch(self) -> Node:
        self.take("switch")
        return Node("switch", (self._condition(), self._braces()))

    def _for(self) -> Node:
        self.take("for")
        self.take("(")
        begin = self.statement()
        condition = self.expression()
        self.take(";")
        step = self.expression()
        self.take(")")
        return Node("for", (begin, condition, step, self.statement()))

    def _return(self) -> Node:
        self.take("return")
        value = self.expression()
        self.take(";")
        return Node("return", (value,))

    def _is_declaration(self) -> bool:
        first, second = self.peek(), self.peek(1)
        named = bool(re.fullmatch(r"[A-Za-z_]\w*", second)) or (first.endswith("_t") and second == "*")
        return first in _TYPE_WORDS or (bool(re.fullmatch(r"[A-Za-z_]\w*", first)) and named)

    def _declaration(self) -> Node:
        while self.peek(1) not in ("=", ";", ","):
            self.take()
        found = []
        while True:
            name = self.take()
            value = Node("number", (0,))
            if self.peek() == "=":
                self.take()
                value = self.expression()
            found.append(Node("set", (name, value)))
            if self.peek() != ",":
                return Node("block", tuple(found))
            self.take()

    def expression(self) -> Node:
        left = self._binary(0)
        if self.peek() == "?":
            self.take()
            yes = self.expression()
            self.take(":")
            return Node("choose", (left, yes, self.expression()))
        if self.peek() == "=" and left.kind == "name":
            self.take()
            return Node("set", (left.parts[0], self.expression()))
        return left

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.peek() in _LEVELS[level]:
            left = Node("binary", (self.take(), left, self._binary(level + 1)))
        return left

    def _unary(self) -> Node:
        if self.peek() in ("!", "-", "+", "&", "*"):
            return Node("unary", (self.take(), self._unary()))
        if self.peek() in ("++", "--"):
            sign = self.take()
            name = self.take()
            return Node("set", (name, Node("binary", (sign[0], Node("name", (name,)), Node("number", (1,))))))
        if self.peek() == "(" and (self.peek(1) in _TYPE_WORDS or self.peek(1).endswith("_t")):
            while self.take() != ")":  # a cast
                pass
            return self._unary()
        return self._postfix()

    def _postfix(self) -> Node:
        word = self.take()
        if word == "(":
            found = self.expression()
            self.take(")")
        elif word[0].isdigit():
            found = Node("number", (float(word.rstrip("f")) if "." in word else int(word.rstrip("ul")),))
        elif word[0] == '"':
            found = Node("text", (word,))
        else:
            found = Node("name", (word,))
        while self.peek() in ("(", "[", "->", ".", "++"):
            found = self._suffix(found)
        return found

    def _suffix(self, left: Node) -> Node:
        word = self.take()
        if word in ("->", "."):
            return Node("field", (left, self.take()))
        if word == "++":
            return Node("set", (left.parts[0], Node("binary", ("+", left, Node("number", (1,))))))
        inside: list[Node] = []
        closing = ")" if word == "(" else "]"
        while self.peek() != closing:
            inside.append(self.expression())
            if self.peek() == ",":
                self.take()
        self.take(closing)
        return Node("call", (left, tuple(inside))) if word == "(" else Node("item", (left, inside[0]))


def parse_function(text: str, name: str) -> Node:
    """The parsed body of a function. Raises CError."""
    return Parser(tokens(function_body(text, name))).block()
