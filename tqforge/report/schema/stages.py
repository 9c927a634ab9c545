"""The records of the stages, told apart by `name`."""

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
    status: StageStatus
    reason: str = ""
    remedy: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    error: ErrorRecord | None = None


class CheckStage(_Stage):
    """Stages that are a list of checks: source, codec, placement."""

    name: Literal["source", "codec", "placement"]
    checks: tuple[Check, ...] = ()


class OpsStage(_Stage):
    name: Literal["ops"] = "ops"
    rows: tuple[OpsRow, ...] = ()


class DeviceStage(_Stage):
    """A whole model on the device. `floor` is KL(CPU || device) of f16/f16; `bar` is what that alone would allow."""

    name: Literal["device"] = "device"
    device: str = ""
    model: str = ""
    model_sha256: str = ""
    text: str = ""
    batches: tuple[int, ...] = ()
    greedy: int = 0
    floor: Real | None = None
    bar: Real | None = None
    rows: tuple[DeviceRow, ...] = ()


class MemoryStage(_Stage):
    name: Literal["memory"] = "memory"
    rows: tuple[MemoryRow, ...] = ()


class NeedleStage(_Stage):
    name: Literal["needle"] = "needle"
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

    name: Literal["quality"] = "quality"
    text: str = ""
    text_sha256: str = ""
    prefixes: tuple[int, ...] = ()
    scored: int = 0
    greedy_at: tuple[int, ...] = ()
    greedy_tokens: int = 0
    rows: tuple[QualityRow, ...] = ()


class SpeedStage(_Stage):
    """`rows` were measured through the bindings, `llama_bench` by upstream's program of the same build.

    `beside` are the rows of another build that took its turns in the same rounds; `beside_build` says which.
    """

    name: Literal["speed"] = "speed"
    threads: int = 0
    rows: tuple[SpeedRow, ...] = ()
    llama_bench: tuple[SpeedRow, ...] = ()
    beside: tuple[SpeedRow, ...] = ()
    beside_build: str = ""
    ratios: tuple[SpeedRatio, ...] = ()
    noise: str = ""  # why the machine was not quiet; empty if it was
    spread: float | None = None  # of repeated rates around their median, the middle one of all rows
    busy: float | None = None  # share of the CPUs that this run had while it was measured


class PlanStage(_Stage):
    """What fits into a memory budget, and which of it is safe."""

    name: Literal["plan"] = "plan"
    n_ctx: int = 0  # of the recommendations
    budgets: tuple[int, ...] = ()  # asked for; without them they are chosen where the recommended pair changes
    working_set: int | None = None  # what the GPU driver of this machine grants, where there is a GPU
    rows: tuple[PlanRow, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()


Stage = Annotated[
    CheckStage | OpsStage | DeviceStage | MemoryStage | NeedleStage | QualityStage | SpeedStage | PlanStage,
    Field(discriminator="name"),
]
