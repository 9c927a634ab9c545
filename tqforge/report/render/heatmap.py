"""Colours of the needle map: brown to pale blue; lightness rises with the score, so that it also works in grey."""

from __future__ import annotations

from itertools import pairwise

from tqforge.report import fmt
from tqforge.report.judge.needles import NeedleMap, Tally

_STOPS = (
    (0.0, (122, 34, 4)),
    (0.25, (201, 97, 32)),
    (0.5, (242, 170, 84)),
    (0.75, (248, 224, 164)),
    (1.0, (190, 221, 246)),
)
_DARK, _LIGHT = "#101214", "#ffffff"


def shade(score: float | None) -> str:
    """Return the CSS `background` and `color` of a judged cell."""
    if not fmt.known(score):
        return ""
    rgb = _mix(min(1.0, max(0.0, score or 0.0)))
    ink = max((_LIGHT, _DARK), key=lambda ink: contrast(rgb, _rgb(ink)))
    return f"background:#{rgb[0]:02x}{rgb[1]:02x}{rgb[2]:02x};color:{ink}"


def _mix(score: float) -> tuple[int, int, int]:
    for (low, first), (high, second) in pairwise(_STOPS):
        if score <= high:
            share = (score - low) / (high - low)
            red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
            return red, green, blue
    return _STOPS[-1][1]


def _rgb(text: str) -> tuple[int, int, int]:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """Return the WCAG 2 contrast ratio, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(rgb: tuple[int, int, int]) -> float:
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def describe(chart: NeedleMap, length: int, column: int, cell: Tally) -> str:
    """Describe a cell for a tooltip and for screen readers."""
    depth = f"depth {fmt.percent(chart.depths[column])}" if chart.depths else "no needle"
    place = f"{fmt.count(length)} tokens, {depth}"
    counts = (
        (cell.hits, "found"),
        (cell.partial, "partly found"),
        (cell.misses, "missed"),
        (cell.inconclusive, "inconclusive"),
        (cell.errors, "failed with an error"),
    )
    seen = ", ".join(f"{number} {word}" for number, word in counts if number) or "not asked"
    return f"{chart.pair}, {place}: {seen}"
