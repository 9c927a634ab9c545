"""`tqforge patch drift`: check whether the series applies to other llama.cpp versions; local folders are only read."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tqforge.adapters import fs
from tqforge.base import snapshots, source
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.core.values import Base
from tqforge.errors import ConfigError, ExitCode
from tqforge.series import apply, series
from tqforge.series.drift import markdown
from tqforge.series.drift.markdown import Drift
from tqforge.series.drift.outcomes import DriftResult
from tqforge.series.drift.probe import Prober
from tqforge.series.failures import broken_reason
from tqforge.series.lock import SeriesPaths


def run(
    ctx: Context,
    targets: Sequence[str],
    *,
    base_name: str | None = None,
    patches: Path | None = None,
    out: Path | None = None,
) -> int:
    """Try the series on each target; return 1 when a patch breaks on one of them."""
    base = load_base(base_name)
    with ctx.workspace.lock("tqforge patch drift"):
        drift = _probe(ctx, base, SeriesPaths.of(base.name, patches), targets)
        folder = out or ctx.workspace.runs / "drift" / drift.series_sha256[:12]
        fs.write_text(folder / "drift.md", markdown.markdown(drift))
        fs.write_text(folder / "drift.json", json.dumps(markdown.document(drift), indent=2) + "\n")
    _show(ctx, drift)
    ctx.out.say(f"  report: {folder / 'drift.md'}")
    ctx.out.document(markdown.document(drift))
    return int(ExitCode.CHECK_FAILED) if drift.breaking else 0


def _probe(ctx: Context, base: Base, paths: SeriesPaths, targets: Sequence[str]) -> Drift:
    chosen = series.load(paths.folder)
    if not chosen.patches:
        raise ConfigError("There is no patch to try.", where=str(paths.folder))
    repository, commit = source.ensure_base(ctx.workspace, ctx.out, base, source.ARCHIVE)
    found = tuple(
        snapshots.import_snapshot(ctx.workspace, ctx.out, repository, base, target) for target in dict.fromkeys(targets)
    )
    with apply.temporary_worktree(repository, "drift", commit) as work:
        whole = tuple(patch for patch in chosen.patches if not broken_reason(patch.data))
        applied = apply.commit_series(repository, work, series.Series(chosen.folder, whole))
    results: dict[str, list[DriftResult]] = {}
    place = {patch.title: number for number, patch in enumerate(chosen.patches)}
    total = float(len(found) * len(chosen.patches))
    with tempfile.TemporaryDirectory(prefix="tqforge-drift-") as scratch, ctx.out.meter("drift", total) as meter:
        prober = Prober(repository, chosen, applied, Path(scratch))
        for number, snapshot in enumerate(found):

            def progress(title: str, before: int = number * len(place), label: str = snapshot.label) -> None:
                meter.update(before + place[title], f"{label}: {title}")

            results[snapshot.label] = prober.run(snapshot.tree, progress)
    return Drift(base, chosen.sha256, found, results)


def _show(ctx: Context, drift: Drift) -> None:
    rows: list[tuple[str, ...]] = []
    breaking: set[str] = set()
    for place, patch in enumerate(drift.patches):
        row = [drift.results[snapshot.label][place] for snapshot in drift.snapshots]
        breaking |= {str(item.outcome) for item in row if item.breaking}
        rows.append((patch, *(str(item.outcome) for item in row), drift.first_breaking(patch) or "-"))
    ctx.out.table(
        rows,
        head=("patch", *(snapshot.label for snapshot in drift.snapshots), "first breaking"),
        title=f"series for {drift.base.name} ({drift.base.title})",
        styles=dict.fromkeys(breaking, "red"),
    )
    for snapshot in drift.snapshots:
        for result in drift.results[snapshot.label]:
            if result.breaking or result.detail:
                ctx.out.show(f"{snapshot.label}  {result.patch}: {markdown.sentence(result)}")
