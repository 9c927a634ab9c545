"""Bars of the page: widths in percent of the longest bar of a chart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tqforge.report import fmt
from tqforge.report.judge import select
from tqforge.report.schema.report import Report


@dataclass(frozen=True)
class Bar:
    """One row of a bar chart."""

    row: Any
    widths: tuple[float, ...]


def _width(value: float, most: float) -> float:
    return round(100 * value / most, 2) if most > 0 and fmt.known(value) else 0.0


def memory(report: Report) -> list[tuple[int, list[Bar]]]:
    """Per context length: K and V as measured, then by formula."""
    groups = []
    for n_ctx, some in groupby(select.memory_rows(report), key=lambda row: row.n_ctx):
        rows = list(some)
        most = max(max(row.k_measured + row.v_measured, row.k_formula + row.v_formula) for row in rows)
        sizes = [(row, (row.k_measured, row.v_measured, row.k_formula, row.v_formula)) for row in rows]
        groups.append((n_ctx, [Bar(row, tuple(_width(value, most) for value in four)) for row, four in sizes]))
    return sorted(groups, reverse=True)


def plan(report: Report) -> list[Bar]:
    """Weights, cache and buffers at the recommended length: measured (else planned), then planned."""
    stage = select.plan_stage(report)
    rows = [row for row in stage.rows if row.n_ctx == stage.n_ctx] if stage else []
    order = select.pair_order(report)
    most = max((max((row.measured or row.planned).total, row.planned.total) for row in rows), default=0)
    return [
        Bar(
            row,
            tuple(
                _width(value, most)
                for need in (row.measured or row.planned, row.planned)
                for value in (need.weights, need.kv + need.kv_swa, need.compute)
            ),
        )
        for row in sorted(rows, key=lambda row: order(row.pair))
    ]


def speed(report: Report) -> list[tuple[str, list[tuple[int, list[Bar]]]]]:
    """Per phase and depth: the rate of each pair."""
    groups = []
    for phase, some in groupby(select.speed_rows(report), key=lambda row: row.phase):
        rows = list(some)
        most = max((row.rate.value for row in rows if fmt.known(row.rate.value)), default=0.0)
        depths = [
            (depth, [Bar(row, (_width(row.rate.value, most),)) for row in deep])
            for depth, deep in groupby(rows, key=lambda row: row.depth)
        ]
        groups.append((str(phase), depths))
    return groups
