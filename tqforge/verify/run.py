"""Run the stages one after the other. Whatever happens in a stage, the run ends with a complete report."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import psutil

from tqforge import __version__
from tqforge.adapters import toolchain
from tqforge.adapters.gguf_io import ModelFacts
from tqforge.errors import TqforgeError
from tqforge.report.judge.budget import advise
from tqforge.report.render.sentences.reasons import reasons
from tqforge.report.schema.base import ErrorRecord, StageStatus
from tqforge.report.schema.provenance import Machine, ModelProvenance, RunSettings
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import (
    Stage,
)
from tqforge.verify import registry
from tqforge.verify.registry import BY_NAME, Record, StageSpec
from tqforge.verify.session import Session, SkippedError
from tqforge.verify.settings import N_BATCH

_WORST_FIRST = (StageStatus.ERROR, StageStatus.FAILED, StageStatus.INCONCLUSIVE)


@dataclass
class RunResult:
    """The stages that ran, the first error, and whether the user interrupted."""

    stages: list[Stage] = field(default_factory=list)
    error: TqforgeError | None = None
    interrupted: KeyboardInterrupt | None = None


def run_stages(session: Session, after: Callable[[list[Stage]], object]) -> RunResult:
    """Run the chosen stages. `after` is called after each one with all that ran so far."""
    result = RunResult()
    for name in session.settings.stages:
        if result.interrupted:
            break
        session.out.step(f"stage {name}")
        result.stages.append(_run_one(session, BY_NAME[name], result))
        after(result.stages)
    return result


def _run_one(session: Session, spec: StageSpec[Any], result: RunResult) -> Stage:
    latest: list[Stage] = [spec.empty]
    session.on_partial(lambda stage: latest.__setitem__(0, stage))
    started = time.monotonic()
    try:
        stage: Stage = judged(spec, spec.run(session))
    except SkippedError as skip:
        stage = _changed(spec.empty, StageStatus.SKIPPED, skip.reason, skip.remedy)
    except TqforgeError as error:
        result.error = result.error or error
        stage = _changed(latest[0], StageStatus.ERROR, error.what, error.remedy, ErrorRecord.of(error))
    except KeyboardInterrupt as stop:
        result.interrupted = stop
        stage = _changed(latest[0], StageStatus.INCONCLUSIVE, "interrupted before its end")
    finally:
        session.on_partial(None)
    return stage.model_copy(update={"seconds": round(time.monotonic() - started, 2)})


def judged(spec: StageSpec[Any], stage: Record) -> Record:
    """Set the status of a stage from its rows; a skipped stage stays skipped."""
    if stage.status is StageStatus.SKIPPED:
        return stage
    verdict = spec.judge(stage)
    return _changed(stage, verdict.status, reasons(verdict.reasons), stage.remedy)


def _changed(
    stage: Record, status: StageStatus, reason: str, remedy: str = "", error: ErrorRecord | None = None
) -> Record:
    changed = stage.model_copy(update={"status": status, "reason": reason, "remedy": remedy, "error": error})
    return cast("Record", changed)  # mypy sees the union of all stages


def status_of(stages: list[Stage]) -> StageStatus:
    """Return the worst status. Skipped stages alone never pass."""
    seen = {stage.status for stage in stages}
    for status in _WORST_FIRST:
        if status in seen:
            return status
    return StageStatus.PASSED if StageStatus.PASSED in seen else StageStatus.SKIPPED


def report(session: Session, stages: list[Stage], *, command: tuple[str, ...], started: datetime) -> Report:
    """Return everything observed, with its provenance."""
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
        build=session.target.provenance,
        model=model_provenance(session.facts, session.model_sha256),
        settings=RunSettings(threads=settings.threads, n_batch=N_BATCH, gpu_layers=session.gpu_layers),
        asked=tuple(settings.stages),
        not_asked=tuple(name for name in registry.NAMES if name not in settings.stages),
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
