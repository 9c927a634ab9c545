"""Why a stage has its status, as values. `report.render.sentences` puts them into words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tqforge.core.pair import Pair
from tqforge.report.judge.facts import Fact
from tqforge.report.schema.base import Check
from tqforge.report.schema.rows import NeedleSummary, OpsRow, PlanRow, QualityRow, SpeedRow


class NothingMeasured(Fact):
    """A stage without a single row."""


class ChecksFailed(Fact):
    checks: tuple[Check, ...]


class OpsFailed(Fact):
    rows: tuple[OpsRow, ...]


class NoDevice(Fact):
    reason: str


class DeviceFault(StrEnum):
    """What is wrong with a pair on the device."""

    REPORTED = "reported"  # by the emulator
    CPU_STRAYED = "cpu strayed"
    IDLE = "idle"
    STRAYED = "strayed"
    READS = "reads"
    WRITES = "writes"
    FAR_FROM_F16 = "far from f16"


@dataclass(frozen=True)
class DeviceProblem:
    """One fault of a row: where it was seen, the figure on the device and what it is compared with."""

    fault: DeviceFault
    where: str = ""
    seen: float = 0.0
    other: float = 0.0


class DeviceFailed(Fact):
    pair: Pair
    problems: tuple[DeviceProblem, ...]


class Missing(StrEnum):
    """What the device stage lacks for a result."""

    FLOOR = "floor"
    PAIRS = "pairs"
    SAME_ROWS = "same rows"


class DeviceOpen(Fact):
    missing: Missing
    pairs: tuple[Pair, ...] = ()


class NeedlesGuessed(Fact):
    answers: int


class NeedleErrors(Fact):
    pairs: tuple[Pair, ...]


class NeedlesLost(Fact):
    summary: NeedleSummary


class ReferenceFindsNothing(Fact):
    """f16 itself answers none of the questions."""


class ModelBroken(Fact):
    rows: tuple[QualityRow, ...]


class FallbackSuspected(Fact):
    rows: tuple[SpeedRow, ...]
    noisy: bool


class PlanOff(Fact):
    row: PlanRow
    by: int
