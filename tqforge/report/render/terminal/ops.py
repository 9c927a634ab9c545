"""Stages ops and device in the terminal: a row per operation, a row per pair."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from tqforge.report import fmt
from tqforge.report.judge import select
from tqforge.report.render.terminal.table import Column, table
from tqforge.report.schema.base import Interval
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import OpsRow
from tqforge.report.schema.stages import DeviceStage

_LEGEND = (
    "KL between CPU and device reading the same cache rows (this is judged), then each its own rows; "
    "of the CPU from itself; of device and CPU from f16."
)


def ops(report: Report, width: int) -> Sequence[RenderableType]:
    """Cases passed per backend, and failed or unsupported ones: `142`, `140 2 failed`, `20 4 unsupported`."""
    rows = select.ops_rows(report)
    if not rows:
        return ()
    names = list(dict.fromkeys(row.op for row in rows))
    columns = []
    for place, backend in enumerate(dict.fromkeys(row.backend for row in rows)):
        found = {row.op: row for row in rows if row.backend == backend}
        columns.append(Column(fmt.line(backend, 28), [_counts(found.get(op)) for op in names], drop=place))
    ops = Column("ops: cases passed", [Text(fmt.line(op, 40)) for op in names])
    return (Padding(table(ops, columns, width), (1, 0, 0, 0)),)


def _counts(row: OpsRow | None) -> Text:
    if row is None:
        return Text(fmt.NONE)
    text = Text(fmt.count(row.passed))
    if row.failed:
        text.append(f" {fmt.count(row.failed)} failed", "bold red")
    if row.unsupported:
        text.append(f" {fmt.count(row.unsupported)} unsupported", "dim")
    if row.worst_nmse is not None:
        text.append(f", NMSE <= {fmt.scientific(row.worst_nmse)}")
    return text


def device(report: Report, width: int) -> Sequence[RenderableType]:
    """KL divergence between device and CPU, of the CPU from itself, and of either from f16."""
    stage = next((stage for stage in select.stages_of(report, DeviceStage) if stage.rows), None)
    if stage is None:
        return ()
    columns = [
        Column(title, [Text(_kl(figure)) for figure in figures], drop)
        for title, drop, figures in (
            ("same rows", 0, [row.kl_same for row in stage.rows]),
            ("CPU/dev", 1, [row.kl for row in stage.rows]),
            ("CPU/CPU", 2, [row.kl_cpu for row in stage.rows]),
            ("f16/dev", 3, [row.kl_f16_device for row in stage.rows]),
            ("f16/CPU", 4, [row.kl_f16_cpu for row in stage.rows]),
        )
    ]
    pairs = Column("device: KL", [Text(str(row.pair)) for row in stage.rows])
    return (Padding(table(pairs, columns, width), (1, 0, 0, 0)), Text(_LEGEND, "dim"))


def _kl(interval: Interval | None) -> str:
    return fmt.kl(interval.value if interval else None)
