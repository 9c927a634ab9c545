"""Where a text is scored, and where it is continued. Pure: tested as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

Window = tuple[int, int]
_LEAST_START = 64


def windows(prefixes: Iterable[int], scored: int) -> tuple[Window, ...]:
    """(first scored token, count) after each prefix. Raises ValueError where they would overlap."""
    found = tuple((prefix, scored) for prefix in sorted(prefixes))
    for (first, count), (then, _) in pairwise(found):
        if first + count >= then:
            raise ValueError(f"{count} tokens after {first} reach into those after {then}")
    return found


def starts(scored: Sequence[Window], count: int) -> tuple[int, ...]:
    """`count` places spread evenly over the text, none of them inside a window."""
    if not scored or not count:
        return ()
    end = scored[-1][0] + scored[-1][1]
    wanted = [_LEAST_START + round(index * (end - _LEAST_START) / count) for index in range(1, count + 1)]
    return tuple(sorted({_outside(place, scored) for place in wanted}))


def _outside(place: int, scored: Sequence[Window]) -> int:
    """The place, or the nearer end of the window it lies in: a window needs the token before it, and all of its own."""
    for first, count in scored:
        before, after = first - 1, first + count
        if before < place < after:
            return before if place - before < after - place else after
    return place
