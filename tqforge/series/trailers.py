"""The trailers of a patch and their grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME, WHY, STATUS, GUARD = "Patch-Name", "Why", "Upstream-Status", "Guard"
ORDER = (NAME, WHY, STATUS, GUARD)
_TITLE = re.compile(r"^[a-z0-9][a-z0-9._-]*$")
_STATUS = re.compile(r"^(Pending|Submitted|Merged|Inappropriate)(?: \[(.*)\])?$")
_PROGRAM = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
_SHELL = re.compile(r"[;&|<>`$\\\n]")
METAL_EMULATOR = "metal-emulator"
#: What the bracket of each status must hold; None where there is none.
_BRACKET = {"Pending": None, "Submitted": "where", "Merged": "where", "Inappropriate": "why"}


@dataclass(frozen=True)
class Guard:
    """A test that fails without the patch. `program` is a test in the build's bin folder, or `metal-emulator`."""

    program: str
    args: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Guard:
        """Parse `test-tq3_0 norm` or `metal-emulator flash-attn`. Raises ValueError with the reason."""
        words = text.split()
        if not words:
            raise ValueError("it names no command")
        if _SHELL.search(text):
            raise ValueError("it runs without a shell: no ; & | < > ` $ or backslash")
        if not _PROGRAM.match(words[0]):
            raise ValueError(f"'{words[0]}' is not the name of a test program")
        if words[0] == METAL_EMULATOR and len(words) < 2:
            raise ValueError("metal-emulator needs the name of a suite")
        return cls(words[0], tuple(words[1:]))

    @property
    def on_metal_emulator(self) -> bool:
        return self.program == METAL_EMULATOR

    def __str__(self) -> str:
        return " ".join((self.program, *self.args))


@dataclass(frozen=True)
class Status:
    """The upstream status of a patch."""

    word: str
    about: str = ""

    @classmethod
    def parse(cls, text: str) -> Status:
        """Parse `Pending`, `Submitted [where]`, `Merged [where]` or `Inappropriate [why]`. Raises ValueError."""
        found = _STATUS.match(text)
        if not found:
            raise ValueError("use Pending, Submitted [where], Merged [where] or Inappropriate [why]")
        word, about = found[1], (found[2] or "").strip()
        wanted = _BRACKET[word]
        if wanted and not about:
            raise ValueError(f"{word} must say {wanted}: {word} [{wanted}]")
        if not wanted and found[2] is not None:
            raise ValueError(f"{word} takes no bracket")
        return cls(word, about)


def check_title(text: str) -> str:
    """Check the name of a patch. Raises ValueError."""
    if not _TITLE.match(text):
        raise ValueError("use lower-case letters, digits, '-', '_' and '.', starting with a letter or digit")
    return text


def check_why(text: str) -> str:
    """Check that the reason is a sentence. Raises ValueError."""
    if len(text.split()) < 3:
        raise ValueError("state the defect or the need in one sentence")
    return text


def problems(trailers: list[tuple[str, str]], title: str) -> list[str]:
    """Return the problems of the trailers of the patch `title`."""
    found: list[str] = []
    values: dict[str, list[str]] = {}
    for key, value in trailers:
        values.setdefault(key, []).append(value)
    for key in ORDER:
        if key not in values:
            found.append(f"'{key}:' is missing")
        elif len(values[key]) > 1 and key != GUARD:
            found.append(f"'{key}:' occurs {len(values[key])} times")
    checks = {NAME: check_title, WHY: check_why, STATUS: Status.parse, GUARD: Guard.parse}
    for key, check in checks.items():
        for value in values.get(key, []):
            try:
                check(value)
            except ValueError as error:
                found.append(f"'{key}: {value}': {error}")
    if values.get(NAME, [title])[0] != title:
        found.append(f"'{NAME}: {values[NAME][0]}' does not match the file name {title}.patch")
    return found


def message(subject: str, body: str, values: dict[str, str]) -> str:
    """Return a commit message with its trailers, each on one line."""
    lines = "\n".join(f"{key}: {values[key]}" for key in ORDER)
    middle = f"{body.strip()}\n\n" if body.strip() else ""
    return f"{subject}\n\n{middle}{lines}\n"
