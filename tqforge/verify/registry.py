"""All stages in the order they run. To add a stage, write its module and add a line to `STAGES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tqforge.errors import UsageError
from tqforge.report.judge import stages as shown
from tqforge.report.judge import statuses
from tqforge.report.judge.statuses import Verdict
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import (
    CheckStage,
    DeviceStage,
    MemoryStage,
    NeedleStage,
    OpsStage,
    PlanStage,
    QualityStage,
    SpeedStage,
    Stage,
)
from tqforge.verify.session import Session
from tqforge.verify.stages import codec, memory, placement, plan, source
from tqforge.verify.stages.device import stage as device
from tqforge.verify.stages.needle import stage as needle
from tqforge.verify.stages.ops import stage as ops
from tqforge.verify.stages.quality import stage as quality
from tqforge.verify.stages.speed import stage as speed

Record = TypeVar("Record", bound=Stage)


@dataclass(frozen=True)
class StageSpec(Generic[Record]):
    """A stage: what it asks, how it runs, and how its rows are judged. `long` ones take minutes by themselves."""

    empty: Record
    title: str
    run: Callable[[Session], Record]
    judge: Callable[[Record], Verdict]
    long: bool = False

    @property
    def name(self) -> str:
        """Return the one name of the stage: in options, in the report and as its heading."""
        return self.empty.name

    @property
    def show(self) -> Callable[[Stage, Report], Iterator[shown.Judged]]:
        """Return the rule that turns its rows into findings."""
        return shown.show.dispatch(type(self.empty))


STAGES: tuple[StageSpec[Any], ...] = (
    StageSpec(CheckStage(name="source"), "Is this the build of lock and checkout?", source.run, statuses.all_checks),
    StageSpec(CheckStage(name="codec"), "Do the encoders equal the reference?", codec.run, statuses.checks),
    StageSpec(OpsStage(), "Do single ops agree with the CPU?", ops.run, statuses.ops, long=True),
    StageSpec(CheckStage(name="placement"), "Do ops run on the device?", placement.run, statuses.checks, long=True),
    StageSpec(DeviceStage(), "Does a model on the device agree with the CPU?", device.run, statuses.device, long=True),
    StageSpec(MemoryStage(), "How many bytes does the cache take?", memory.run, statuses.memory),
    StageSpec(NeedleStage(), "Which facts are found in a long text?", needle.run, statuses.needle),
    StageSpec(QualityStage(), "How far is the model from f16?", quality.run, statuses.quality),
    StageSpec(PlanStage(), "Which pair fits which memory?", plan.run, statuses.plan),
    StageSpec(SpeedStage(), "How fast are prompt and answer?", speed.run, statuses.speed, long=True),
)
NAMES = tuple(spec.name for spec in STAGES)
BY_NAME = {spec.name: spec for spec in STAGES}


def choose(names: Sequence[str], *, full: bool = False) -> tuple[str, ...]:
    """Return the named stages in their order; without names all, or all but the long ones.

    Raises UsageError for an unknown name.
    """
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise UsageError(f"There is no stage '{unknown[0]}'.", remedy=f"Choose from: {', '.join(NAMES)}.")
    return tuple(spec.name for spec in STAGES if (spec.name in names if names else full or not spec.long))
