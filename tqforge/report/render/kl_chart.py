"""Draw KL divergence against bits per value."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import Bbox

from tqforge.report import fmt
from tqforge.report.judge.select import pareto
from tqforge.report.judge.thresholds import BROKEN, CHANGED, CLOSE
from tqforge.report.render import svg
from tqforge.report.render.sentences import pairs
from tqforge.report.schema.rows import QualityRow

#: Offsets of a label from its point, in order of preference: right, left, above, below, corners, farther away.
_PLACES = (
    (9, 0),
    (-9, 0),
    (0, 10),
    (0, -10),
    (8, 9),
    (-8, 9),
    (8, -9),
    (-8, -9),
    (0, 20),
    (0, -20),
    (14, 18),
    (14, -18),
)
_BANDS = ((CLOSE, "close to f16"), (CHANGED, "clearly different"), (BROKEN, "unusable"))
_KINDS = (
    ("tq3_0 for keys and values", svg.OURS, "o"),
    ("tq3_0 on one side", svg.MIXED, "D"),
    ("stock types", svg.STOCK, "s"),
)


def drawable(rows: Sequence[QualityRow]) -> list[QualityRow]:
    """Return the rows that a logarithmic axis can show."""
    return [row for row in rows if not row.is_floor and fmt.known(row.kl.value) and row.kl.value > 0]


def kl_chart(rows: Sequence[QualityRow], name: str, *, narrow: bool = False) -> str:
    """Return an SVG, or an empty text if no row can be drawn. `narrow` is for phones."""
    points = drawable(rows)
    if not points:
        return ""
    with svg.style():
        figure = svg.canvas(3.9, 4.4) if narrow else svg.canvas(7.6, 4.3)
        axes = figure.add_subplot()
        low, high = _limits(points, rows)
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        axes.set_xlim(*_span(points))
        _decorate(axes, narrow)
        _floor(axes, rows, low)
        front = pareto(points)
        axes.plot([row.bits for row in front], [row.kl.value for row in front], color=svg.MUTED, lw=1.2, zorder=2)
        for row in points:
            _point(axes, row, low)
        _tie(axes, points)
        _legend(figure, axes, points, len(front), narrow)
        _labels(figure, axes, points, 8.0 if narrow else 8.5)
    return svg.finish(figure, name, "KL divergence against bits per value", _describe(points))


def _span(points: Sequence[QualityRow]) -> tuple[float, float]:
    bits = [row.bits for row in points]
    room = max(1.0, 0.16 * (max(bits) - min(bits)))
    return min(bits) - room, max(bits) + room


def _limits(points: Sequence[QualityRow], rows: Sequence[QualityRow]) -> tuple[float, float]:
    noise = [row.kl.value for row in rows if row.is_floor and fmt.known(row.kl.value) and row.kl.value > 0]
    bounds = [bound for row in points for bound in (row.kl.low, row.kl.high) if fmt.known(bound) and bound > 0]
    values = [row.kl.value for row in points] + noise + bounds
    return max(min(values), 1e-7) / 1.8, max(values) * 2.2


def _decorate(axes: Axes, narrow: bool) -> None:
    size = 7.5 if narrow else 8.5
    axes.set_xlabel("bits per value (left: smaller cache)", fontsize=size + 0.5)
    axes.set_ylabel("KL divergence, nats per token (down: closer to f16)", fontsize=size + 0.5)
    axes.tick_params(labelsize=size)
    axes.grid(visible=True, which="major", lw=0.5, alpha=0.7)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(
        LogLocator(10, (1.0,) if axes.get_ylim()[1] / axes.get_ylim()[0] > 50 else (1.0, 2.0, 5.0))
    )
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: fmt.figure(value, 1)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    for level, text in _BANDS:
        if low < level < high / 1.15:
            axes.axhline(level, color=svg.MUTED, lw=0.8, ls=(0, (1, 3)), zorder=1)
            right = axes.get_yaxis_transform()
            axes.text(
                0.995, level * 1.04, text, transform=right, ha="right", va="bottom", fontsize=size - 1, color=svg.MUTED
            )


def _floor(axes: Axes, rows: Sequence[QualityRow], low: float) -> None:
    for row in rows:
        if row.is_floor and fmt.known(row.kl.value) and row.kl.value > 0:
            axes.axhline(row.kl.value, color=svg.FLOOR, lw=1.2, ls=(0, (5, 3)), zorder=1)
            bounds = (max(row.kl.low, low), row.kl.high)
            if all(map(fmt.known, bounds)):
                axes.axhspan(*bounds, color=svg.FLOOR, alpha=0.12, lw=0, zorder=0)


def _kind(row: QualityRow) -> tuple[str, str, str]:
    return _KINDS[int(row.pair.is_mixed) if row.pair.has_tq3_0 else 2]


def _point(axes: Axes, row: QualityRow, low: float) -> None:
    _, colour, marker = _kind(row)
    if fmt.known(row.kl.low) and fmt.known(row.kl.high):
        bounds = [max(row.kl.low, low), max(row.kl.high, low)]
        axes.plot([row.bits, row.bits], bounds, color=colour, lw=1.4, marker="_", ms=8, mew=1.4, zorder=3)
    fill, edge, width, above = (svg.PAPER, colour, 1.3, 4.0) if row.unrotated else (colour, svg.PAPER, 0.8, 4.5)
    axes.plot([row.bits], [row.kl.value], marker=marker, color=fill, mec=edge, mew=width, ms=6, ls="none", zorder=above)


def _tie(axes: Axes, points: Sequence[QualityRow]) -> None:
    """Join a pair and itself without rotation by a dotted line, so that the second point needs no label."""
    usual = {row.pair: row for row in points if not row.unrotated}
    for row in points:
        if row.unrotated and row.pair in usual:
            ends = [usual[row.pair].kl.value, row.kl.value]
            axes.plot([row.bits, row.bits], ends, color=svg.MUTED, lw=1.0, ls=(0, (1, 2)), zorder=2)


def _legend(figure: Figure, axes: Axes, points: Sequence[QualityRow], front: int, narrow: bool) -> None:
    kinds = [kind for kind in _KINDS if any(_kind(row) == kind for row in points)]
    handles = [axes.plot([], [], marker=m, color=c, mec=svg.PAPER, ms=7, ls="none", label=t)[0] for t, c, m in kinds]
    if any(row.unrotated for row in points):
        handles += axes.plot(
            [], [], marker="s", color=svg.PAPER, mec=svg.STOCK, mew=1.3, ms=7, ls="none", label="rotation switched off"
        )
    if front > 1:
        handles += axes.plot([], [], color=svg.MUTED, lw=1.2, label="Pareto front")
    if any(line.get_color() == svg.FLOOR for line in axes.lines):
        handles += axes.plot([], [], color=svg.FLOOR, lw=1.2, ls=(0, (5, 3)), label="noise: f16 against itself")
    size = 7.5 if narrow else 8.5
    columns = 2 if narrow else 3
    figure.legend(
        handles=handles, loc="outside upper left", ncols=columns, fontsize=size, frameon=False, columnspacing=1.2
    )


def _labels(figure: Figure, axes: Axes, points: Sequence[QualityRow], size: float) -> None:
    """Place each label beside its point where it overlaps the least."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    frame = axes.get_window_extent(renderer)
    spots = [tuple(axes.transData.transform((row.bits, row.kl.value))) for row in points]
    taken = [Bbox.from_bounds(x - 7, y - 7, 14, 14) for x, y in spots]
    taken += [Bbox.from_bounds(x - 2, y - 2, 4, 4) for x, y in _along(axes, pareto(points))]
    taken += [text.get_window_extent(renderer) for text in axes.texts]
    taken += [Bbox.from_bounds(frame.x0, y - 2, frame.width, 4) for y in _levels(axes)]
    for row in sorted((row for row in points if not row.unrotated), key=lambda row: (row.bits, row.kl.value)):
        text = axes.annotate(
            "", (row.bits, row.kl.value), xytext=(0, 0), textcoords="offset points", fontsize=size, zorder=5
        )
        text.set_parse_math(False)
        text.set_text(str(row.pair))
        costs = []
        for place, (dx, dy) in enumerate(_PLACES):
            _move(text, dx, dy)
            box = text.get_window_extent(renderer)
            costs.append((sum(_shared(box, other) for other in taken) + _outside(box, frame) + place * 0.2, place))
        _move(text, *_PLACES[min(costs)[1]])
        taken.append(text.get_window_extent(renderer))


def _along(axes: Axes, front: Sequence[QualityRow]) -> list[tuple[float, float]]:
    """Return closely spaced points on the Pareto front, to keep labels off it."""
    ends = [axes.transData.transform((row.bits, row.kl.value)) for row in front]
    return [
        (x0 + (x1 - x0) * step / 24, y0 + (y1 - y0) * step / 24)
        for (x0, y0), (x1, y1) in pairwise(ends)
        for step in range(1, 24)
    ]


def _levels(axes: Axes) -> list[float]:
    """Return the heights of the horizontal lines: the thresholds and the noise."""
    lines = [np.asarray(line.get_xydata()) for line in axes.lines]
    heights = [line[0, 1] for line in lines if line[:, 0].tolist() == [0, 1]]  # as axhline draws them
    return [float(axes.transData.transform((0, height))[1]) for height in heights]


def _move(text: object, dx: float, dy: float) -> None:
    text.set_position((dx, dy))  # type: ignore[attr-defined]
    text.set_ha("left" if dx > 0 else "right" if dx < 0 else "center")  # type: ignore[attr-defined]
    text.set_va("bottom" if dy > 0 else "top" if dy < 0 else "center")  # type: ignore[attr-defined]


def _shared(one: Bbox, other: Bbox) -> float:
    """Return the area that two boxes have in common."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return float(width * height) if width > 0 and height > 0 else 0.0


def _outside(box: Bbox, frame: Bbox) -> float:
    return 4 * (float(box.width * box.height) - _shared(box, frame))


def _describe(points: Sequence[QualityRow]) -> str:
    parts = [f"{pairs.name(row)}: {fmt.bits(row.bits)} bits, KL {fmt.kl(row.kl.value)}" for row in points]
    return f"{'; '.join(parts)}. The table below has the same figures."
