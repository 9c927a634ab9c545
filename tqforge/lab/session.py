"""Run the lab on the models of a command line and record what was measured."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import gguf

from tqforge.adapters import gguf_io
from tqforge.base import models
from tqforge.core.reporter import Reporter
from tqforge.lab import record, run
from tqforge.lab.record import LabRecord, ModelRecord
from tqforge.lab.run import Setup, Wanted
from tqforge.verify import corpus
from tqforge.verify import request as requests
from tqforge.workspace import Workspace

RECORD = "lab.json"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to measure on which models; `out` receives the record."""

    models: Sequence[str | None]
    wanted: Wanted
    out: Path
    command: str
    threads: int


def measure(workspace: Workspace, reporter: Reporter, request: requests.Request, order: Order) -> LabRecord:
    """Measure model by model. The record on disk is complete after every model."""
    target = requests.target(workspace, reporter, request)
    order.out.mkdir(parents=True, exist_ok=True)
    setup = Setup(library=target.library, bindings=target.bindings, folder=order.out, threads=order.threads)
    done: list[ModelRecord] = []
    found = [models.resolve(workspace, reporter, name) for name in order.models]
    for path, sha256 in found:
        reporter.step(f"{path.name}: {run.steps(order.wanted)} runs")
        facts = gguf_io.read(path)
        done.append(
            run.measure(setup, facts, order.wanted, parameters=parameters(path), sha256=sha256, step=reporter.tell)
        )
        kept = LabRecord(
            tree=target.provenance.tree,
            command=order.command,
            date=datetime.now(UTC).date().isoformat(),
            text_sha256=hashlib.sha256(corpus.quality().content.encode()).hexdigest(),
            windows=run.WINDOWS,
            models=tuple(done),
        )
        record.write(kept, order.out / RECORD)
    return kept


def parameters(path: Path) -> int:
    """Return the number of weights of a model file."""
    return int(sum(tensor.n_elements for tensor in gguf.GGUFReader(path).tensors))
