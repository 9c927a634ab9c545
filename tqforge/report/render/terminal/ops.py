"""Single ops and the whole model in the terminal: a row per op with one count per backend, a row per pair."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tqforge.report import fmt
from tqforge.report.judge import select
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import OpsRow
from tqforge.report.schema.stages import DeviceStage


def ops(report: Report) -> Sequence[RenderableType]:
    """Cases that agreed, and on request the wrong and the refused ones: `142`, `140 2 wrong`, `20 4 refused`."""
    rows = select.ops_rows(report)
    if not rows:
        return ()
    backends = list(dict.fromkeys(row.backend for row in rows))
    table = _table("cases of single ops")
    for backend in backends:
        table.add_column(fmt.line(backend, 28), justify="right")
    for op in dict.fromkeys(row.op for row in rows):
        found = {row.backend: row for row in rows if row.op == op}
        table.add_row(fmt.line(op, 40), *(_counts(found.get(backend)) for backend in backends))
    return (Padding(table, (0, 0, 1, 0)),)


def _counts(row: OpsRow | None) -> Text:
    if row is None:
        return Text(fmt.NONE)
    text = Text(fmt.count(row.passed))
    if row.failed:
        text.append(f" {fmt.count(row.failed)} wrong", "bold red")
    if row.unsupported:
        text.append(f" {fmt.count(row.unsupported)} refused", "dim")
    if row.worst_nmse is not None:
        text.append(f", NMSE <= {fmt.scientific(row.worst_nmse)}")
    return text


def device(report: Report) -> Sequence[RenderableType]:
    """KL of the device from the CPU with the same rows and its own, of the CPU from itself, of the pair from f16."""
    stage = next((stage for stage in select.stages_of(report, DeviceStage) if stage.rows), None)
    if stage is None:
        return ()
    table = _table("whole model")
    for title in ("same rows", "CPU/dev", "CPU/CPU", "f16/dev", "f16/CPU"):
        table.add_column(title, justify="right")
    for row in stage.rows:
        table.add_row(
            str(row.pair),
            fmt.kl(row.kl_same.value if row.kl_same else None),
            fmt.kl(row.kl.value),
            fmt.kl(row.kl_cpu.value if row.kl_cpu else None),
            fmt.kl(row.kl_f16_device.value if row.kl_f16_device else None),
            fmt.kl(row.kl_f16_cpu.value if row.kl_f16_cpu else None),
        )
    return (Padding(table, (0, 0, 1, 0)),)


def _table(title: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(title, overflow="fold", min_width=11)
    return table
