"""The texts of the package: one to hide needles in, one to measure quality on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Text:
    """A text of the package."""

    name: str
    content: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content.encode()).hexdigest()


def load(name: str) -> Text:
    """Load `hay.txt` or `quality.txt` from the package."""
    content = (resources.files("tqforge") / "_texts" / name).read_text(encoding="utf-8")
    return Text(name, content)


def hay() -> Text:
    return load("hay.txt")


def quality() -> Text:
    """Return the text for quality, followed by the needle text for long contexts."""
    first, then = load("quality.txt"), hay()
    return Text(f"{first.name} + {then.name}", f"{first.content}\n\n{then.content}")
