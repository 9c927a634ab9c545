"""Parse a patch file in mail format, without git."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$")
_TRAILER = re.compile(r"^([A-Z][A-Za-z0-9-]*): (.*\S)\s*$")
_HEADER = re.compile(r"^(From|Date|Subject|MIME-Version|Content-Type|Content-Transfer-Encoding): (.*)$")
_PREFIX = re.compile(r"^\[PATCH[^\]]*\]\s*")
_SEPARATOR = "---"


class PatchFormatError(ValueError):
    """The text is not a well-formed patch; `line` is the place."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


@dataclass(frozen=True)
class Hunk:
    """One hunk. `lines` keep their first character; a `\\` line marks a missing newline at the end of the file."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    lines: tuple[str, ...]

    def changed(self, sign: str) -> list[str]:
        """Return the lines that the hunk adds (`+`) or removes (`-`), without the sign."""
        return [line[1:] for line in self.lines if line.startswith(sign)]


@dataclass(frozen=True)
class FileDiff:
    """The change of one file. `head` holds the lines from `diff --git` to the first hunk."""

    head: tuple[str, ...]
    hunks: tuple[Hunk, ...] = ()

    @property
    def path(self) -> str:
        """The path after the change, or before it when the file is deleted."""
        return _path(self.head, "+++ b/") or _path(self.head, "--- a/") or self._from_diff_line()

    @property
    def old_path(self) -> str:
        """The path before the change."""
        return _path(self.head, "--- a/") or _path(self.head, "rename from ") or self.path

    def _from_diff_line(self) -> str:
        words = self.head[0].removeprefix("diff --git a/")
        half = len(words) // 2
        same = words[:half] == words[half + 1 :].removeprefix("b/") or words.split(" b/")[0]
        return words[:half] if same is True else str(same)

    @property
    def status(self) -> str:
        """`A` added, `D` deleted, `R` renamed, `M` modified."""
        for letter, word in (("A", "new file mode "), ("D", "deleted file mode "), ("R", "rename from ")):
            if _has(self.head, word):
                return letter
        return "M"

    @property
    def binary(self) -> bool:
        return _has(self.head, "GIT binary patch") or _has(self.head, "Binary files ")

    @property
    def mode_change(self) -> bool:
        return _has(self.head, "old mode ")


@dataclass(frozen=True)
class PatchFile:
    """A parsed patch. `head` is all text before the first `diff --git` line, `tail` all after the last hunk."""

    head: tuple[str, ...]
    files: tuple[FileDiff, ...]
    tail: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict, compare=False)
    body: tuple[str, ...] = field(default=(), compare=False)

    @property
    def subject(self) -> str:
        return _PREFIX.sub("", self.headers.get("Subject", ""))

    @property
    def trailers(self) -> list[tuple[str, str]]:
        """The trailers of the last paragraph of the message, in order."""
        return _trailers(self.body)

    def trailer(self, key: str) -> str:
        """Return the value of a trailer, empty without one."""
        return next((value for name, value in self.trailers if name == key), "")

    def paths(self) -> list[str]:
        return [diff.path for diff in self.files]


def _has(lines: tuple[str, ...], prefix: str) -> bool:
    return any(line.startswith(prefix) for line in lines)


def _path(lines: tuple[str, ...], prefix: str) -> str:
    return next((line.removeprefix(prefix).rstrip("\t") for line in lines if line.startswith(prefix)), "")


def _trailers(body: tuple[str, ...]) -> list[tuple[str, str]]:
    paragraph: list[str] = []
    for line in reversed(body):
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            break
    found = [_TRAILER.match(line) for line in reversed(paragraph)]
    return [(match[1], match[2]) for match in found if match]


def parse(text: str) -> PatchFile:
    """Parse a patch file. Raises PatchFormatError with the line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    first = next((number for number, line in enumerate(lines) if line.startswith("diff --git ")), len(lines))
    head = tuple(lines[:first])
    headers, body = _message(head)
    files, end = _files(lines, first)
    tail = tuple(lines[end:])
    if tail and tail[0] != "-- " and any(line.strip() for line in tail):
        raise PatchFormatError(f"neither a hunk nor a file: {tail[0]!r}", end + 1)
    return PatchFile(head=head, files=files, tail=tail, headers=headers, body=body)


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """Parse the output of `git diff`. Raises PatchFormatError."""
    return _files(text.split("\n"), 0)[0]


def _files(lines: list[str], place: int) -> tuple[tuple[FileDiff, ...], int]:
    files = []
    while place < len(lines) and lines[place].startswith("diff --git "):
        diff, place = _file(lines, place)
        files.append(diff)
    return tuple(files), place


def _message(head: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the mail headers (folded lines joined) and the commit message."""
    if not head or not head[0].startswith("From "):
        raise PatchFormatError("not in mail format: the first line is not 'From <id> <date>'", 1)
    headers: dict[str, str] = {}
    last, number = "", 1
    for number, line in enumerate(head[1:], 1):
        if line[:1] in (" ", "\t") and last:
            headers[last] += " " + line.strip()
        elif match := _HEADER.match(line):
            last = match[1]
            headers[last] = match[2]
        elif not line.strip():
            break
        else:
            raise PatchFormatError(f"not a mail header: {line!r}", number + 1)
    for key in ("From", "Date", "Subject"):
        if key not in headers:
            raise PatchFormatError(f"the mail header '{key}:' is missing", number + 1)
    body = head[number + 1 :]
    end = next((place for place, line in enumerate(body) if line == _SEPARATOR), len(body))
    return headers, body[:end]


def _file(lines: list[str], start: int) -> tuple[FileDiff, int]:
    place = start + 1
    while place < len(lines) and not lines[place].startswith(("@@ ", "diff --git ", "-- ")):
        if lines[place].startswith("GIT binary patch"):
            place = next((n for n in range(place, len(lines)) if lines[n].startswith("diff --git ")), len(lines))
            break
        place += 1
    head, hunks = tuple(lines[start:place]), []
    while place < len(lines) and lines[place].startswith("@@ "):
        hunk, place = _hunk(lines, place)
        hunks.append(hunk)
    return FileDiff(head, tuple(hunks)), place


def _hunk(lines: list[str], start: int) -> tuple[Hunk, int]:
    match = _HUNK.match(lines[start])
    if not match:
        raise PatchFormatError(f"a broken hunk header: {lines[start]!r}", start + 1)
    old, new = int(match[2] or 1), int(match[4] or 1)
    left, right, place = old, new, start + 1
    while (left > 0 or right > 0) and place < len(lines):
        sign = lines[place][:1]
        if sign not in (" ", "+", "-", "\\"):
            raise PatchFormatError(f"the hunk ends {left} old and {right} new lines early", place + 1)
        left -= sign in (" ", "-")
        right -= sign in (" ", "+")
        place += 1
    if left or right:
        raise PatchFormatError("the hunk is cut off, or its line counts are wrong", place)
    if place < len(lines) and lines[place].startswith("\\"):
        place += 1
    hunk = Hunk(int(match[1]), old, int(match[3]), new, match[5], tuple(lines[start + 1 : place]))
    return hunk, place


def net_lines(lines: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count the removed and the added lines of a diff; moved lines cancel out, blank lines do not count."""
    lines = list(lines)
    removed = Counter(line[1:].rstrip("\r") for line in lines if line.startswith("-") and not line.startswith("--- "))
    added = Counter(line[1:].rstrip("\r") for line in lines if line.startswith("+") and not line.startswith("+++ "))
    for side in (removed, added):
        for blank in [line for line in side if not line.strip()]:
            del side[blank]
    return removed - added, added - removed
