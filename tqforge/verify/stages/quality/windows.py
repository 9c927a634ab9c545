"""Plan where a text is scored and where it is continued."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

Window = tuple[int, int]
_LEAST_START = 64


def windows(prefixes: Iterable[int], scored: int) -> tuple[Window, ...]:
    """Return (first scored token, count) after each prefix. Raises ValueError if they overlap."""
    found = tuple((prefix, scored) for prefix in sorted(prefixes))
    for (first, count), (then, _) in pairwise(found):
        if first + count >= then:
            raise ValueError(f"{count} tokens after {first} reach into those after {then}")
    return found


def starts(scored: Sequence[Window], count: int) -> tuple[int, ...]:
    """Return `count` places spread evenly over the text, none inside a window."""
    if not scored or not count:
        return ()
    end = scored[-1][0] + scored[-1][1]
    wanted = [_LEAST_START + round(index * (end - _LEAST_START) / count) for index in range(1, count + 1)]
    return tuple(sorted({_outside(place, scored) for place in wanted}))


def _outside(place: int, scored: Sequence[Window]) -> int:
    """Move a place out of the window it lies in, to the nearer end."""
    for first, count in scored:
        before, after = first - 1, first + count
        if before < place < after:
            return before if place - before < after - place else after
    return place
