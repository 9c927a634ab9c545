"""Check that a change applied to the function it was made for.

Patches and merges know lines, not functions: where upstream has two functions with similar bodies, both can silently
remove a line from the wrong one. So the section of a removed line is compared: the heading that git prints after `@@`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tqforge.series.patchfile import FileDiff

_HEADING = re.compile(r"^[A-Za-z_$]")
_WORD = re.compile(r"\w")
Read = Callable[[str], str]


@dataclass(frozen=True)
class Removal:
    """A removed line, and the heading above it."""

    path: str
    line: str
    section: str


def removals(diffs: Sequence[FileDiff], read: Read) -> Iterator[Removal]:
    """Yield the removed lines with words below a heading. `read` returns the files before the change."""
    for diff in diffs:
        if diff.status == "D" or not any(hunk.changed("-") for hunk in diff.hunks):
            continue
        lines = read(diff.old_path).splitlines()
        for hunk in diff.hunks:
            number = hunk.old_start
            for line in hunk.lines:
                if line.startswith("-") and _WORD.search(line) and not _HEADING.match(line[1:]):
                    section = _above(lines, number)
                    if section:
                        yield Removal(diff.old_path, line[1:].rstrip("\r"), section)
                number += line[:1] in (" ", "-")


def misplaced(made: Sequence[Removal], landed: Sequence[Removal], read: Read) -> list[tuple[Removal, str]]:
    """Return lines removed from the wrong section although the right one still exists and has the line."""
    sections: dict[str, set[str]] = {}
    for item in made:
        sections.setdefault(item.line, set()).add(item.section)
    found = []
    for item in landed:
        wanted = sections.get(item.line, set())
        if not wanted or item.section in wanted:
            continue
        lines = read(item.path).splitlines()
        found += [(item, section) for section in sorted(wanted) if item.line in _below(lines, section)]
    return found


def _above(lines: Sequence[str], number: int) -> str:
    """Return the nearest heading before a line (counted from 1)."""
    return next((line for line in reversed(lines[: number - 1]) if _HEADING.match(line)), "")


def _below(lines: Sequence[str], section: str) -> list[str]:
    """Return all lines of the sections with that heading."""
    found: list[str] = []
    inside = False
    for line in lines:
        if _HEADING.match(line):
            inside = line == section
        elif inside:
            found.append(line)
    return found
