"""Collect recorded runs as evidence: only runs of an exported tree count, the others are listed as stale."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import Pair
from tqforge.pr.redact import without_paths
from tqforge.pr.rules import State
from tqforge.proof.record import GuardProof, ProofRecord
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import OpsRow, QualityRow, SpeedRow
from tqforge.report.schema.stages import OpsStage, QualityStage, SpeedStage

_Record = TypeVar("_Record", bound=BaseModel)
_Stage = TypeVar("_Stage", QualityStage, SpeedStage, OpsStage)


@dataclass(frozen=True)
class Runs:
    """The records that count, in the order of their folders, and a line for each that does not."""

    reports: tuple[tuple[str, Report], ...]
    proofs: tuple[ProofRecord, ...]
    stale: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...]  # the records by name, without paths


def collect(runs: Path, trees: Sequence[str], private: Sequence[str]) -> Runs:
    """Collect the workspace's records of these trees. `private` are folders of this machine."""
    reports: list[tuple[str, Report]] = []
    proofs: list[ProofRecord] = []
    stale: list[str] = []
    files: list[tuple[str, bytes]] = []
    for path in sorted(runs.glob("*/report.json")):
        name = path.parent.name
        report, data = _read(path, Report, private)
        if report and report.build.tree in trees:
            reports.append((name, report))
            files.append((f"{name}.report.json", data))
        else:
            stale.append(_stale(name, f"tree {report.build.tree[:12]}" if report else ""))
    for path in sorted((runs / "prove").glob("*.json")):
        record, data = _read(path, ProofRecord, private)
        if record and record.tree in trees:
            proofs.append(record)
            files.append((f"{path.stem}.prove.json", data))
        else:
            stale.append(_stale(f"prove {path.stem}", f"tree {record.tree[:12]}" if record else ""))
    return Runs(tuple(reports), tuple(proofs), tuple(stale), tuple(files))


def _stale(name: str, tree: str) -> str:
    return f"{name}: {tree} is not exported here" if tree else f"{name}: not readable by this version of tqforge"


def _read(path: Path, kind: type[_Record], private: Sequence[str]) -> tuple[_Record | None, bytes]:
    """Return a record and its JSON, both without paths; no record when the file does not hold one."""
    try:
        value: Any = without_paths(json.loads(path.read_bytes()), private)
        return kind.model_validate_json(json.dumps(value)), (
            json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        ).encode()
    except (OSError, ValueError, ValidationError):
        return None, b""


def states(runs: Runs) -> dict[str, State]:
    """Return the state of each kind of evidence."""
    measured = [row.pair for _, row in quality(runs) if not (row.is_floor or row.unrotated)]
    return {
        "quality": _of_pairs("quality", measured),
        "speed": _of_pairs("speed", [row.pair for _, row in speed(runs)]),
        "ops": _ops_state(runs),
        "prove": _proof_state(runs),
    }


def _of_pairs(stage: str, measured: Sequence[Pair]) -> State:
    pairs = sorted(set(measured))
    ours, others = [p for p in pairs if p.has_tq3_0], [p for p in pairs if not p.has_tq3_0]
    if not ours:
        return State(False, f"missing: no recorded run of this tree with a passed stage '{stage}' and {TQ3_0}")
    if len(others) < 2:
        return State(False, f"missing: types of similar size next to {', '.join(map(str, ours))} in the same run")
    return State(True, f"FACTS.md: {', '.join(map(str, pairs))}")


def _ops_state(runs: Runs) -> State:
    """Kernels that the Metal emulator ran on the CPU are no second backend: their dispatches are counted."""
    good = [row for _, row in ops(runs) if row.passed and not row.failed]
    backends = sorted({row.backend for row in good if row.dispatches is None})
    if len(backends) >= 2:
        return State(True, f"FACTS.md: {', '.join(backends)}")
    emulated = "; Metal kernels ran only on the emulator" if any(row.dispatches for row in good) else ""
    return State(False, f"missing: a second backend (recorded: {', '.join(backends) or 'none'}{emulated})")


def _proof_state(runs: Runs) -> State:
    proofs = guard_proofs(runs)
    unproven = [proof.patch for proof in proofs if not proof.holds]
    if not proofs:
        return State(False, "missing: no recorded `tqforge patch prove` of this tree")
    if unproven:
        return State(False, f"not proven: {', '.join(dict.fromkeys(unproven))}")
    return State(True, f"FACTS.md: {len(proofs)} guard tests")


def _stages(
    runs: Runs, kind: type[_Stage], states: Sequence[StageStatus] = (StageStatus.PASSED,)
) -> Iterator[tuple[str, _Stage]]:
    for name, report in runs.reports:
        for stage in report.stages:
            if isinstance(stage, kind) and stage.status in states:
                yield name, stage


def quality(runs: Runs) -> list[tuple[str, QualityRow]]:
    """Return the quality rows. A failed stage counts: it found a pair that breaks its model, which is a result."""
    stages = _stages(runs, QualityStage, (StageStatus.PASSED, StageStatus.FAILED))
    return [(name, row) for name, stage in stages for row in stage.rows]


def speed(runs: Runs) -> list[tuple[str, SpeedRow]]:
    return [(name, row) for name, stage in _stages(runs, SpeedStage) for row in stage.rows]


def ops(runs: Runs) -> list[tuple[str, OpsRow]]:
    """Return the runs of test-backend-ops; the emulator's own cases, which have an NMSE, are left out."""
    return [(name, row) for name, stage in _stages(runs, OpsStage) for row in stage.rows if row.worst_nmse is None]


def guard_proofs(runs: Runs) -> list[GuardProof]:
    return [proof for record in runs.proofs for proof in record.proofs]
