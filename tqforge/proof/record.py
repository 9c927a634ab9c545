"""What a run of `tqforge patch prove` showed, as values and as its record. Computes only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqforge.core.values import Base
from tqforge.proof.runner import Seen, Verdict

SCHEMA = "tqforge.prove/1"
PROVEN = "proven"
DEFERRED = "deferred"
NEEDED = "cannot be dropped alone; red before it; needed by"


@dataclass(frozen=True)
class Proof:
    """One guard of one patch."""

    patch: str
    guard: str
    with_it: Seen | None
    without_it: Seen | None
    how: str = ""
    note: str = ""
    needed_by: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`proven`, `deferred`, or what is wrong."""
        if self.with_it is None or self.with_it.verdict is Verdict.DEFERRED:
            return DEFERRED
        if self.with_it.verdict is not Verdict.GREEN:
            return f"with the patch: {self.with_it.verdict}"
        if self.without_it is None or self.without_it.verdict is Verdict.DEFERRED:
            return DEFERRED
        if not self.without_it.verdict.is_red:
            return "the guard stays green without the patch"
        return f"{NEEDED} {', '.join(self.needed_by)}" if self.needed_by else PROVEN

    @property
    def fails(self) -> bool:
        return self.verdict not in (PROVEN, DEFERRED) and not self.verdict.startswith(NEEDED)

    @property
    def without(self) -> str:
        """What the guard showed without the patch, or why it was not run, in words."""
        if self.without_it is None:
            return self.note
        return f"{self.without_it.verdict} ({self.how}): {self.without_it.detail}"


@dataclass(frozen=True)
class Report:
    """Everything one run of prove looked at."""

    base: Base
    series_sha256: str
    titles: tuple[str, ...]  # of the whole series
    tree: str
    prefixes: tuple[tuple[str, Seen], ...]
    proofs: tuple[Proof, ...]

    @property
    def failures(self) -> int:
        good = (Verdict.GREEN, Verdict.DEFERRED)
        return sum(seen.verdict not in good for _, seen in self.prefixes) + sum(p.fails for p in self.proofs)

    @property
    def deferred(self) -> int:
        put_off = sum(seen.verdict is Verdict.DEFERRED for _, seen in self.prefixes)
        return put_off + sum(proof.verdict == DEFERRED for proof in self.proofs)

    @property
    def seconds(self) -> float:
        """What all of it took when it was built and run, in this run or an earlier one."""
        seen = {item.key: item for _, item in self.prefixes}
        for proof in self.proofs:
            seen |= {item.key: item for item in (proof.with_it, proof.without_it) if item}
        return sum(item.seconds for item in seen.values())


def document(report: Report) -> dict[str, Any]:
    """The JSON form, bound to tree ids. Without times: the same proof gives the same record."""
    return {
        "schema": SCHEMA,
        "base": {"name": report.base.name, "tree": report.base.tree},
        "series_sha256": report.series_sha256,
        "tree": report.tree,
        "prefixes": [{"patch": name, **_seen(seen)} for name, seen in report.prefixes],
        "proofs": [
            {
                "patch": proof.patch,
                "guard": proof.guard,
                "verdict": proof.verdict,
                "how": proof.how,
                "note": proof.note,
                "needed_by": list(proof.needed_by),
                "with": _seen(proof.with_it) if proof.with_it else None,
                "without": _seen(proof.without_it) if proof.without_it else None,
            }
            for proof in report.proofs
        ],
    }


def merged(new: dict[str, Any], path: Path, order: Sequence[str]) -> dict[str, Any]:
    """A record with what an earlier run of the same series recorded about patches that this one left out."""
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return new
    if any(old.get(key) != new[key] for key in ("schema", "base", "series_sha256", "tree")):
        return new
    kept = {}
    for part in ("prefixes", "proofs"):
        fresh = {row["patch"] for row in new[part]}
        rows = [*new[part], *(row for row in old[part] if row["patch"] not in fresh)]
        kept[part] = sorted(rows, key=lambda row: order.index(row["patch"]))
    return {**new, **kept}


def _seen(seen: Seen) -> dict[str, Any]:
    return {"tree": seen.tree, "test": seen.test, "verdict": str(seen.verdict), "detail": seen.detail}
