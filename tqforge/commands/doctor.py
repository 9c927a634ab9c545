"""`tqforge doctor`: check whether this machine can build, and say how to fix what is missing."""

from __future__ import annotations

from dataclasses import asdict

from tqforge.build import doctor
from tqforge.build.doctor import DoctorLevel
from tqforge.context import Context
from tqforge.errors import ExitCode

_MARKS = {DoctorLevel.GOOD: "good", DoctorLevel.OPTIONAL: "note", DoctorLevel.BAD: "bad"}
_STYLES = {"good": "green", "note": "yellow", "bad": "bold red"}


def run(ctx: Context) -> int:
    """Print all findings; return 1 when something required is missing."""
    findings = doctor.examine(ctx.workspace)
    bad = [finding.name for finding in findings if finding.level is DoctorLevel.BAD]
    rows = [(_MARKS[item.level], item.name, "\n".join(filter(None, (item.seen, item.remedy)))) for item in findings]
    ctx.out.table(rows, styles=_STYLES)
    ctx.out.show(f"Not ready: {', '.join(bad)}." if bad else "Ready. Run `tqforge build`.")
    ctx.out.document({"ready": not bad, "findings": [asdict(finding) for finding in findings]})
    return int(ExitCode.CHECK_FAILED) if bad else 0
