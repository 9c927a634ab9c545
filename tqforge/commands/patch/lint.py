"""`tqforge patch lint`: check the rules of the series; each finding comes with a remedy."""

from __future__ import annotations

from pathlib import Path

from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.errors import ExitCode
from tqforge.series import lint
from tqforge.series.lint import subject
from tqforge.series.lint.subject import Finding, Skipped, Subject
from tqforge.series.lock import SeriesPaths


def run(ctx: Context, *, base_name: str | None = None, patches: Path | None = None) -> int:
    """Print the findings; return 1 when there is one."""
    base = load_base(base_name)
    with ctx.workspace.lock("tqforge patch lint"):
        looked_at = subject.load(ctx.workspace, ctx.out, base, SeriesPaths.of(base.name, patches))
        findings, skipped = lint.check(looked_at)
    _show(ctx, looked_at, findings, skipped)
    return int(ExitCode.CHECK_FAILED) if findings else 0


def _show(ctx: Context, looked_at: Subject, findings: list[Finding], skipped: list[Skipped]) -> None:
    for finding in findings:
        where = finding.patch or f"series {looked_at.base}"
        ctx.out.show(f"{where}: {finding.message} ({finding.rule})\n    next: {finding.remedy}")
    for rule in skipped:
        ctx.out.show(f"skipped: {rule.rule}: {rule.reason}")
    done = len(lint.RULES) - len({rule.rule for rule in skipped})
    count = len(looked_at.series.patches)
    ctx.out.show(f"{count} patches, {done} of {len(lint.RULES)} rules run, {len(findings)} findings")
    ctx.out.document(
        {
            "base": looked_at.base,
            "patches": count,
            "rules": [name for name, _ in lint.RULES],
            "findings": [
                {"rule": item.rule, "patch": item.patch, "message": item.message, "remedy": item.remedy}
                for item in findings
            ],
            "skipped": [{"rule": item.rule, "reason": item.reason} for item in skipped],
        }
    )
