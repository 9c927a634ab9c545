"""`tqforge doctor`: is everything here that tqforge needs, and what to do about what is not."""

from __future__ import annotations

from dataclasses import asdict

from rich.markup import escape
from rich.table import Table

from tqforge.build import doctor
from tqforge.build.doctor import Finding, Level
from tqforge.context import Context
from tqforge.errors import ExitCode

_MARKS = {Level.GOOD: "[green]good[/]", Level.OPTIONAL: "[yellow]note[/]", Level.BAD: "[bold red]bad[/]"}


def run(ctx: Context) -> int:
    """Look at everything; 1 when something that is needed is missing."""
    findings = doctor.examine(ctx.workspace)
    bad = [finding for finding in findings if finding.level is Level.BAD]
    ctx.out.show(_table(findings))
    if bad:
        ctx.out.show(f"Not ready: {', '.join(finding.name for finding in bad)}.")
    else:
        ctx.out.show("Ready: `tqforge build`.")
    ctx.out.document({"ready": not bad, "findings": [asdict(finding) for finding in findings]})
    return int(ExitCode.CHECK_FAILED) if bad else 0


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = finding.seen if not finding.remedy else f"{finding.seen}\n{finding.remedy}"
        table.add_row(_MARKS[finding.level], finding.name, escape(text))
    return table
