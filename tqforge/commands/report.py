"""`tqforge report`: a recorded run, shown again."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters import fs
from tqforge.context import Context
from tqforge.domain.report import html, recorded, table


def run(ctx: Context, path: Path | None = None, page: Path | None = None) -> int:
    """Print the run; with `page` write its HTML there. Nothing is measured and the recorded run stays as it is."""
    source = path or recorded.newest(ctx.workspace.runs)
    report = recorded.load(source)
    if page:
        fs.write_text(page, html.render(report))
        ctx.out.say(f"The page is in {page}")
    ctx.out.show(table.render(report))
    ctx.out.document(report.to_json())
    return 0
