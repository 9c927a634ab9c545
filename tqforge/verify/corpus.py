"""The texts that ship with tqforge: one to hide needles in, another to measure quality on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Text:
    """A text of ours, by its name and its sha256."""

    name: str
    content: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content.encode()).hexdigest()


def load(name: str) -> Text:
    """`hay.txt` or `quality.txt`, from inside the package."""
    content = (resources.files("tqforge") / "_texts" / name).read_text(encoding="utf-8")
    return Text(name, content)


def hay() -> Text:
    return load("hay.txt")


def quality() -> Text:
    """The text that quality is measured on, and the hay after it for long contexts."""
    first, then = load("quality.txt"), hay()
    return Text(f"{first.name} + {then.name}", f"{first.content}\n\n{then.content}")
