"""Convert Matplotlib figures to inline SVG with CSS variables as colours, for light, dark and print."""

from __future__ import annotations

import html
import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # no message about rebuilding its font cache

#: Placeholder colours; `finish` replaces each by a CSS variable.
INK = "#010203"
MUTED = "#010204"
GRID = "#010205"
PAPER = "#010206"
OURS = "#010207"
MIXED = "#010208"
STOCK = "#010209"
FLOOR = "#01020a"
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "line",
    PAPER: "card",
    OURS: "ours",
    MIXED: "mixed",
    STOCK: "stock",
    FLOOR: "floor",
}
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tqforge",
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "grid.color": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@contextmanager
def style() -> Iterator[None]:
    """Apply the common style of all figures."""
    with rc_context(_STYLE):  # type: ignore[arg-type]  # stubs know the names as literals only
        yield


def canvas(width: float, height: float) -> Figure:
    """Return a figure of this size in inches, without the global state of pyplot."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # needed to measure text when labels are placed
    return figure


def finish(figure: Figure, name: str, title: str, description: str) -> str:
    """Return the `<svg>` element: scalable, with unique ids, and a title and a description for screen readers."""
    stream = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with style():
        figure.savefig(stream, format="svg", metadata=nothing)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*</defs>", "", text)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    box = re.search(r'viewBox="[^"]+"', text)
    labels = f"<title>{html.escape(title)}</title><desc>{html.escape(description)}</desc>"
    head = f'<svg class="{name}" role="img" {box.group() if box else ""} xmlns:xlink="http://www.w3.org/1999/xlink">'
    body = re.sub(r"\n\s*", "\n", text[text.index(">") + 1 :])
    return f"{head}{labels}{body}".strip()
