"""`tqforge report`: show the report of an earlier run."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters import fs
from tqforge.context import Context
from tqforge.report.render import html
from tqforge.report.render.terminal import screen
from tqforge.report.schema import store


def run(ctx: Context, path: Path | None = None, page: Path | None = None) -> int:
    """Print the report, and write it as HTML to `page`."""
    source = path or store.newest(ctx.workspace.runs)
    report = store.load(source)
    if page:
        fs.write_text(page, html.render(report))
        ctx.out.tell(f"HTML report: {page}")
    ctx.out.show(screen.render(report))
    ctx.out.document(report.to_json())
    return 0
