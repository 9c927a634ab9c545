"""The records of the stages, told apart by `kind`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tqforge.core.pair import Pair
from tqforge.report.schema.base import Check, ErrorRecord, Real, Record, StageStatus
from tqforge.report.schema.rows import (
    DeviceRow,
    MemoryRow,
    NeedleCell,
    NeedleSummary,
    OpsRow,
    PlanRow,
    QualityRow,
    Recommendation,
    SpeedRatio,
    SpeedRow,
)


class _Stage(Record):
    """What all stages record. A stage is inconclusive until its rows were judged."""

    name: str
    status: StageStatus = StageStatus.INCONCLUSIVE
    reason: str = ""
    remedy: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    error: ErrorRecord | None = None


class CheckStage(_Stage):
    """A stage that is a list of checks."""

    kind: Literal["checks"] = "checks"
    checks: tuple[Check, ...] = ()


class OpsStage(_Stage):
    """Runs of single ops; `no_device` says why only the CPU part ran."""

    kind: Literal["ops"] = "ops"
    name: str = "ops"
    rows: tuple[OpsRow, ...] = ()
    no_device: str = ""


class DeviceStage(_Stage):
    """A whole model on the device. `floor` is KL(CPU || device) of f16/f16, `limit` what a pair may have."""

    kind: Literal["device"] = "device"
    name: str = "device"
    device: str = ""
    model: str = ""
    model_sha256: str = ""
    text: str = ""
    batches: tuple[int, ...] = ()
    greedy: int = 0
    floor: Real | None = None
    limit: Real | None = None
    rows: tuple[DeviceRow, ...] = ()


class MemoryStage(_Stage):
    kind: Literal["memory"] = "memory"
    name: str = "memory"
    rows: tuple[MemoryRow, ...] = ()


class NeedleStage(_Stage):
    kind: Literal["needle"] = "needle"
    name: str = "needle"
    text: str = ""
    text_sha256: str = ""
    template_sha256: str = ""
    answer_tokens: int = 0
    lengths: tuple[int, ...] = ()
    depths: tuple[float, ...] = ()
    prefix: Literal["shared", "fresh"] = "fresh"
    losses: tuple[Pair, ...] = ()  # pairs that lost needles which f16 found: a stage that passed can have them
    cells: tuple[NeedleCell, ...] = ()
    summaries: tuple[NeedleSummary, ...] = ()


class QualityStage(_Stage):
    """`scored` tokens after each of the `prefixes` of one text; `greedy_tokens` generated after each of `greedy_at`."""

    kind: Literal["quality"] = "quality"
    name: str = "quality"
    text: str = ""
    text_sha256: str = ""
    prefixes: tuple[int, ...] = ()
    scored: int = 0
    greedy_at: tuple[int, ...] = ()
    greedy_tokens: int = 0
    rows: tuple[QualityRow, ...] = ()


class SpeedStage(_Stage):
    """`rows` were measured through the bindings, `llama_bench` by upstream's program of the same build.

    `compared` are rows of the build `compared_with`, measured in turns in the same rounds. `spread` is
    the median relative spread of repeated rates, `busy` the share of the CPUs that the run had (None on a GPU).
    """

    kind: Literal["speed"] = "speed"
    name: str = "speed"
    threads: int = 0
    rows: tuple[SpeedRow, ...] = ()
    llama_bench: tuple[SpeedRow, ...] = ()
    compared: tuple[SpeedRow, ...] = ()
    compared_with: str = ""
    ratios: tuple[SpeedRatio, ...] = ()
    spread: float | None = None
    busy: float | None = None


class PlanStage(_Stage):
    """The memory of every pair, and the recommendation per memory budget."""

    kind: Literal["plan"] = "plan"
    name: str = "plan"
    n_ctx: int = 0  # of the recommendations
    budgets: tuple[int, ...] = ()  # asked for; without them they are chosen where the recommended pair changes
    working_set: int | None = None  # what the GPU driver of this machine grants, where there is a GPU
    rows: tuple[PlanRow, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()


Stage = Annotated[
    CheckStage | OpsStage | DeviceStage | MemoryStage | NeedleStage | QualityStage | SpeedStage | PlanStage,
    Field(discriminator="kind"),
]
