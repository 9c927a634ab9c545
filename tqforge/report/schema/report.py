"""`report.json`: every figure of a run beside the provenance it was measured under.

Sizes are bytes, times seconds, KL divergences nats per token, rates tokens per second.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from tqforge.core.pair import Pair
from tqforge.report.schema.base import Record, StageStatus
from tqforge.report.schema.provenance import BuildProvenance, Machine, ModelProvenance, RunSettings
from tqforge.report.schema.rows import PairVerdict
from tqforge.report.schema.stages import Stage

SCHEMA_VERSION: Literal[2] = 2


class Report(Record):
    """The report of one `tqforge verify`."""

    schema_version: Literal[2] = SCHEMA_VERSION
    tqforge: str
    command: tuple[str, ...]
    started: str
    seconds: float
    status: StageStatus
    profile: Literal["quick", "full", "custom"]
    pairs: tuple[Pair, ...]
    seeds: tuple[int, ...]
    machine: Machine
    build: BuildProvenance
    model: ModelProvenance | None
    settings: RunSettings | None = None
    asked: tuple[str, ...] = ()  # stages of this run; some are missing while it goes on
    not_asked: tuple[str, ...] = ()  # the other stages that this version has
    stages: tuple[Stage, ...]
    verdicts: tuple[PairVerdict, ...] = ()  # one per pair that was compared with f16

    def to_json(self) -> dict[str, Any]:
        """Return plain values without NaN, ready for `json.dumps`."""
        values: dict[str, Any] = json.loads(self.model_dump_json())
        return values
