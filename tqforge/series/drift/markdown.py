"""Render the drift report as JSON and as drift.md: one table of patches and snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tqforge.base.snapshots import Snapshot
from tqforge.core.values import Base
from tqforge.series.drift.outcomes import DriftResult

SCHEMA = "tqforge.drift/1"


@dataclass(frozen=True)
class Drift:
    """All results by the label of the snapshot, in the order of `--to`."""

    base: Base
    series_sha256: str
    snapshots: tuple[Snapshot, ...]
    results: Mapping[str, Sequence[DriftResult]]

    @property
    def patches(self) -> list[str]:
        return [result.patch for result in next(iter(self.results.values()), ())]

    def first_breaking(self, patch: str) -> str:
        """Return the first snapshot, in the given order, where a patch breaks; empty when it never does."""
        for snapshot in self.snapshots:
            if any(result.patch == patch and result.breaking for result in self.results[snapshot.label]):
                return snapshot.label
        return ""

    @property
    def breaking(self) -> int:
        return sum(result.breaking for results in self.results.values() for result in results)


def document(drift: Drift) -> dict[str, Any]:
    """Return the JSON document."""
    return {
        "schema": SCHEMA,
        "base": {"name": drift.base.name, "commit": drift.base.commit, "tree": drift.base.tree},
        "series_sha256": drift.series_sha256,
        "snapshots": [
            {
                **asdict(snapshot),
                "results": [
                    {**asdict(item), "outcome": str(item.outcome), "breaking": item.breaking}
                    for item in drift.results[snapshot.label]
                ],
            }
            for snapshot in drift.snapshots
        ],
        "first_breaking": {patch: drift.first_breaking(patch) or None for patch in drift.patches},
    }


def markdown(drift: Drift) -> str:
    """Return the text of drift.md."""
    labels = [snapshot.label for snapshot in drift.snapshots]
    lines = [
        f"# Drift of the series for base {drift.base.name}",
        "",
        f"Base: {drift.base.title}, tree {drift.base.tree}. Series: {drift.series_sha256[:12]}.",
        "",
        *_row(["patch", *labels, "first breaking"]),
        "|" + " --- |" * (len(labels) + 2),
    ]
    for place, patch in enumerate(drift.patches):
        cells = [_cell(drift.results[label][place]) for label in labels]
        lines += _row([f"`{patch}`", *cells, drift.first_breaking(patch) or "-"])
    for snapshot in drift.snapshots:
        lines += ["", f"## {snapshot.label}", "", f"Tree {snapshot.tree}, from {snapshot.origin}.", ""]
        lines += [f"* `{result.patch}`: {sentence(result)}" for result in drift.results[snapshot.label]]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(cells) + " |"]


def _cell(result: DriftResult) -> str:
    return f"**{result.outcome}**" if result.breaking else str(result.outcome)


def sentence(result: DriftResult) -> str:
    """Return outcome, place, detail and dependencies as one line."""
    text = str(result.outcome)
    text += f" in {result.place()}" if result.file else ""
    text += f" ({result.detail})" if result.detail else ""
    return text + (f"; depends on {', '.join(result.needs)}, which failed" if result.needs else "")
