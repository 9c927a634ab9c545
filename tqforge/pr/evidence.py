"""Recorded runs as evidence: only those of an exported tree fill a table; the others are named as stale."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tqforge.pr.redact import without_paths
from tqforge.pr.rules import State
from tqforge.report.schema.report import OpsStage, QualityStage, Report, SpeedStage, Status

TYPE = "tq3_0"


@dataclass(frozen=True)
class Runs:
    """The records that count, in the order of their folders, and a line for each that does not."""

    reports: tuple[tuple[str, Report], ...]
    proofs: tuple[tuple[str, dict[str, Any]], ...]
    stale: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...]  # the records by name, without paths


def collect(runs: Path, trees: Sequence[str], private: Sequence[str]) -> Runs:
    """Look through the workspace's runs for records of these trees. `private` are folders of this machine."""
    reports, proofs, stale, files = [], [], [], []
    for path in sorted(runs.glob("*/report.json")):
        try:
            record = without_paths(_object(path.read_bytes()), private)
            report = Report.model_validate_json(json.dumps(record))
        except (OSError, ValidationError):
            stale.append(f"{path.parent.name}: not readable by this tqforge")
            continue
        if report.build.tree in trees:
            reports.append((path.parent.name, report))
            files.append((f"{path.parent.name}.report.json", _bytes(record)))
        else:
            stale.append(f"{path.parent.name}: measured on tree {report.build.tree[:12]}, which is not exported here")
    for path in sorted((runs / "prove").glob("*.json")):
        record = without_paths(_object(path.read_bytes()), private)
        if record.get("schema") != "tqforge.prove/1":
            continue
        if record["tree"] in trees:
            proofs.append((path.stem, record))
            files.append((f"{path.stem}.prove.json", _bytes(record)))
        else:
            stale.append(f"prove {path.stem}: tree {record['tree'][:12]}, which is not exported here")
    return Runs(tuple(reports), tuple(proofs), tuple(stale), tuple(files))


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _bytes(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()


def states(runs: Runs) -> dict[str, State]:
    """What each kind of evidence comes to."""
    return {
        "quality": _of_rows("quality", [row for _, row in quality(runs) if not (row.is_floor or row.unrotated)]),
        "speed": _of_rows("speed", [row for _, row in speed(runs)]),
        "ops": _ops_state(runs),
        "prove": _proof_state(runs),
    }


def _of_rows(stage: str, rows: Sequence[Any]) -> State:
    pairs = sorted({row.pair for row in rows})
    ours, others = [pair for pair in pairs if TYPE in pair], [pair for pair in pairs if TYPE not in pair]
    if not ours:
        return State(False, f"missing: no recorded run of this tree with a passed stage '{stage}' and {TYPE}")
    if len(others) < 2:
        return State(False, f"missing: types of similar size beside {', '.join(ours)} in the same run")
    return State(True, f"FACTS.md: {', '.join(pairs)}")


def _ops_state(runs: Runs) -> State:
    """Kernels that the Metal emulator executed on the CPU are no second backend: their dispatches are counted."""
    good = [row for _, row in ops(runs) if row.passed and not row.failed]
    backends = sorted({row.backend for row in good if row.dispatches is None})
    if len(backends) >= 2:
        return State(True, f"FACTS.md: {', '.join(backends)}")
    aside = "; Metal kernels ran on the emulator alone" if any(row.dispatches for row in good) else ""
    return State(False, f"missing: a second backend (recorded: {', '.join(backends) or 'none'}{aside})")


def _proof_state(runs: Runs) -> State:
    rows = list(proof_rows(runs))
    short = [row["patch"] for row in rows if not _is_proven(row["verdict"])]
    if not rows:
        return State(False, "missing: no recorded `tqforge patch prove` of this tree")
    if short:
        return State(False, f"not proven: {', '.join(dict.fromkeys(short))}")
    return State(True, f"FACTS.md: {len(rows)} guards")


def _is_proven(verdict: str) -> bool:
    return verdict == "proven" or verdict.startswith("cannot be dropped alone; red")


def _stages(runs: Runs, kind: type[Any], states: Sequence[Status] = (Status.PASSED,)) -> Iterable[tuple[str, Any]]:
    for name, report in runs.reports:
        for stage in report.stages:
            if isinstance(stage, kind) and stage.status in states:
                yield name, stage


def quality(runs: Runs) -> list[tuple[str, Any]]:
    """A stage that failed measured as well: it found a pair that breaks its model, and that is a fact to show."""
    stages = _stages(runs, QualityStage, (Status.PASSED, Status.FAILED))
    return [(name, row) for name, stage in stages for row in stage.rows]


def speed(runs: Runs) -> list[tuple[str, Any]]:
    return [(name, row) for name, stage in _stages(runs, SpeedStage) for row in stage.rows]


def ops(runs: Runs) -> list[tuple[str, Any]]:
    """Runs of test-backend-ops; the emulator's own cases, which have an NMSE, are not."""
    return [(name, row) for name, stage in _stages(runs, OpsStage) for row in stage.rows if row.worst_nmse is None]


def proof_rows(runs: Runs) -> list[dict[str, Any]]:
    return [row for _, record in runs.proofs for row in record["proofs"]]
