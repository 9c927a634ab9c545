"""The stages one after the other. Whatever a stage meets, the run ends with a whole report."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psutil

from tqforge import __version__
from tqforge.adapters import toolchain
from tqforge.adapters.gguf_io import ModelFacts
from tqforge.errors import TqforgeError
from tqforge.report.judge.recommend import advise
from tqforge.report.schema.base import ErrorRecord, StageStatus
from tqforge.report.schema.provenance import Machine, ModelProvenance, RunSettings
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
from tqforge.verify.session import Session, SkippedError
from tqforge.verify.settings import N_BATCH
from tqforge.verify.stages import codec, memory, placement, plan, source
from tqforge.verify.stages.device import stage as device
from tqforge.verify.stages.needle import stage as needle
from tqforge.verify.stages.ops import stage as ops
from tqforge.verify.stages.quality import stage as quality
from tqforge.verify.stages.speed import stage as speed

#: One entry per stage, in the order they run: how it runs, and an empty record for when it could not.
STAGES: dict[str, tuple[Callable[[Session], Stage], Callable[[StageStatus], Stage]]] = {
    "source": (source.run, lambda status: CheckStage(name="source", status=status)),
    "codec": (codec.run, lambda status: CheckStage(name="codec", status=status)),
    "ops": (ops.run, lambda status: OpsStage(status=status)),
    "placement": (placement.run, lambda status: CheckStage(name="placement", status=status)),
    "device": (device.run, lambda status: DeviceStage(status=status)),
    "memory": (memory.run, lambda status: MemoryStage(status=status)),
    "needle": (needle.run, lambda status: NeedleStage(status=status)),
    "quality": (quality.run, lambda status: QualityStage(status=status)),
    "plan": (plan.run, lambda status: PlanStage(status=status)),
    "speed": (speed.run, lambda status: SpeedStage(status=status)),
}
_WORST_FIRST = (StageStatus.ERROR, StageStatus.FAILED, StageStatus.INCONCLUSIVE)


@dataclass
class RunResult:
    """The stages that ran, the first error, and whether the user broke off."""

    stages: list[Stage] = field(default_factory=list)
    error: TqforgeError | None = None
    interrupted: KeyboardInterrupt | None = None


def run_stages(session: Session, after: Callable[[list[Stage]], object]) -> RunResult:
    """Run the stages of the settings. `after` is called after each one with all that ran so far."""
    outcome = RunResult()
    for name in session.settings.stages:
        if outcome.interrupted:
            break
        session.out.step(f"stage {name}")
        stage = _run_one(session, name, outcome)
        outcome.stages.append(stage)
        after(outcome.stages)
    return outcome


def _run_one(session: Session, name: str, outcome: RunResult) -> Stage:
    action, empty = STAGES[name]
    latest: list[Stage] = []
    session.on_partial(lambda stage: latest.__setitem__(slice(None), [stage]))
    started = time.monotonic()
    try:
        stage = action(session)
    except SkippedError as put_off:
        stage = empty(StageStatus.SKIPPED).model_copy(update={"reason": put_off.reason, "remedy": put_off.remedy})
    except TqforgeError as error:
        outcome.error = outcome.error or error
        record = ErrorRecord.of(error)
        changes = {"status": StageStatus.ERROR, "reason": error.what, "remedy": error.remedy, "error": record}
        stage = (latest[0] if latest else empty(StageStatus.ERROR)).model_copy(update=changes)
    except KeyboardInterrupt as stop:
        outcome.interrupted = stop
        changes = {"status": StageStatus.INCONCLUSIVE, "reason": "interrupted before its end"}
        stage = (latest[0] if latest else empty(StageStatus.INCONCLUSIVE)).model_copy(update=changes)
    finally:
        session.on_partial(None)
    return stage.model_copy(update={"seconds": round(time.monotonic() - started, 2)})


def status_of(stages: list[Stage]) -> StageStatus:
    """The worst that came out. What was put off never passes by itself: at least one stage must have."""
    seen = {stage.status for stage in stages}
    for status in _WORST_FIRST:
        if status in seen:
            return status
    return StageStatus.PASSED if StageStatus.PASSED in seen else StageStatus.SKIPPED


def report(session: Session, stages: list[Stage], *, command: tuple[str, ...], started: datetime) -> Report:
    """Everything observed, with the keys it was observed under."""
    settings = session.settings
    made = Report(
        tqforge=__version__,
        command=command,
        started=started.astimezone(UTC).isoformat(timespec="seconds"),
        seconds=round((datetime.now(UTC) - started).total_seconds(), 2),
        status=status_of(stages),
        profile=settings.profile,
        pairs=settings.with_control,
        seeds=settings.seeds,
        machine=machine(),
        build=session.target.keys,
        model=model_provenance(session.facts, session.model_sha256),
        settings=RunSettings(threads=settings.threads, n_batch=N_BATCH, gpu_layers=session.gpu_layers),
        asked=tuple(settings.stages),
        stages=tuple(stages),
    )
    return advise(made)


def machine() -> Machine:
    return Machine(
        system=platform.system(),
        release=platform.release(),
        arch=platform.machine(),
        cpu=toolchain.host().cpu or platform.machine(),
        cores=psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
        memory=psutil.virtual_memory().total,
        python=platform.python_version(),
    )


def model_provenance(facts: ModelFacts, sha256: str) -> ModelProvenance:
    return ModelProvenance(
        name=facts.name,
        file=facts.path.name,
        sha256=sha256,
        size=facts.size,
        arch=facts.arch,
        layers=facts.layers,
        heads=facts.heads,
        kv_heads=max(facts.kv_heads),
        head_k=facts.head_k,
        head_v=facts.head_v,
        trained_context=facts.trained_context,
        vocabulary=facts.vocabulary,
        swa_window=facts.swa_window,
        mla=facts.mla,
        chat_template=facts.chat_template is not None,
    )
