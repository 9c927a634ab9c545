"""`tqforge patch prove`: build every prefix, and check that each guard test fails without its patch."""

from __future__ import annotations

import json
from pathlib import Path

from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.errors import ExitCode
from tqforge.proof.prove import Selection, prove
from tqforge.proof.record import ProofRecord
from tqforge.proof.results import GuardResult, GuardStatus
from tqforge.series.lock import SeriesPaths


def run(ctx: Context, selection: Selection, *, base_name: str | None = None, patches: Path | None = None) -> int:
    """Prove the selected patches; return 1 when a prefix or a guard fails."""
    base = load_base(base_name)
    with ctx.workspace.lock("tqforge patch prove"):
        record, path = prove(ctx.workspace, ctx.out, base, SeriesPaths.of(base.name, patches), selection)
    _show(ctx, record)
    ctx.out.say(f"  record: {path}")
    ctx.out.document(json.loads(record.to_json()))
    return int(ExitCode.CHECK_FAILED) if record.failures else 0


def _show(ctx: Context, record: ProofRecord) -> None:
    if record.prefixes:
        rows = [(row.patch, row.result.tree[:12], row.result.test, _outcome(row.result)) for row in record.prefixes]
        ctx.out.table(rows, head=("up to", "tree", "test", "result"), title="prefixes")
    if record.proofs:
        guards = [
            (proof.patch, proof.guard, str(proof.with_patch.status), proof.without(), proof.sentence())
            for proof in record.proofs
        ]
        ctx.out.table(guards, head=("patch", "test", "with the patch", "without it", "outcome"), title="guard tests")
    skipped = f", {record.skipped} skipped" if record.skipped else ""
    ctx.out.show(f"tree {record.tree}: {record.failures} failures{skipped}; {record.seconds:.0f} s of work")


def _outcome(result: GuardResult) -> str:
    return str(result.status) if result.status is GuardStatus.PASSED else f"{result.status}: {result.detail}"
