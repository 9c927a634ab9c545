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
from tqforge.report.schema.report import (
    CheckStage,
    DeviceStage,
    Failure,
    Machine,
    MemoryStage,
    ModelKeys,
    NeedleStage,
    OpsStage,
    PlanStage,
    QualityStage,
    Report,
    RunSettings,
    SpeedStage,
    Stage,
    Status,
)
from tqforge.verify.session import DeferredError, Session
from tqforge.verify.settings import N_BATCH
from tqforge.verify.stages import codec, memory, placement, plan, source
from tqforge.verify.stages.device import stage as device
from tqforge.verify.stages.needle import stage as needle
from tqforge.verify.stages.ops import stage as ops
from tqforge.verify.stages.quality import stage as quality
from tqforge.verify.stages.speed import stage as speed

#: One entry per stage, in the order they run: how it runs, and an empty record for when it could not.
STAGES: dict[str, tuple[Callable[[Session], Stage], Callable[[Status], Stage]]] = {
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
_WORST_FIRST = (Status.ERROR, Status.FAILED, Status.INCONCLUSIVE)


@dataclass
class Outcome:
    """The stages that ran, the first error, and whether the user broke off."""

    stages: list[Stage] = field(default_factory=list)
    error: TqforgeError | None = None
    interrupted: KeyboardInterrupt | None = None


def run_stages(session: Session, after: Callable[[list[Stage]], object]) -> Outcome:
    """Run the stages of the settings. `after` is called after each one with all that ran so far."""
    outcome = Outcome()
    for name in session.settings.stages:
        if outcome.interrupted:
            break
        session.out.step(f"stage {name}")
        stage = _run_one(session, name, outcome)
        outcome.stages.append(stage)
        after(outcome.stages)
    return outcome


def _run_one(session: Session, name: str, outcome: Outcome) -> Stage:
    action, empty = STAGES[name]
    latest: list[Stage] = []
    session.on_partial(lambda stage: latest.__setitem__(slice(None), [stage]))
    started = time.monotonic()
    try:
        stage = action(session)
    except DeferredError as put_off:
        stage = empty(Status.DEFERRED).model_copy(update={"reason": put_off.reason, "remedy": put_off.remedy})
    except TqforgeError as error:
        outcome.error = outcome.error or error
        failure = Failure(
            kind=type(error).__name__, code=int(error.code), what=error.what, where=error.where, remedy=error.remedy
        )
        changes = {"status": Status.ERROR, "reason": error.what, "remedy": error.remedy, "error": failure}
        stage = (latest[0] if latest else empty(Status.ERROR)).model_copy(update=changes)
    except KeyboardInterrupt as stop:
        outcome.interrupted = stop
        changes = {"status": Status.INCONCLUSIVE, "reason": "interrupted before its end"}
        stage = (latest[0] if latest else empty(Status.INCONCLUSIVE)).model_copy(update=changes)
    finally:
        session.on_partial(None)
    return stage.model_copy(update={"seconds": round(time.monotonic() - started, 2)})


def status_of(stages: list[Stage]) -> Status:
    """The worst that came out. What was put off never passes by itself: at least one stage must have."""
    seen = {stage.status for stage in stages}
    for status in _WORST_FIRST:
        if status in seen:
            return status
    return Status.PASSED if Status.PASSED in seen else Status.DEFERRED


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
        model=model_keys(session.facts, session.model_sha256),
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


def model_keys(facts: ModelFacts, sha256: str) -> ModelKeys:
    return ModelKeys(
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
