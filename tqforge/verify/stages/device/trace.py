"""Run a small model on the device: its f16 copy, its child process, and the batches it evaluates."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tqforge.adapters import fs, proc
from tqforge.adapters.llama import emulator_report, graphs
from tqforge.adapters.llama.api.measure import Trace, WriteEmulatorReport
from tqforge.adapters.llama.api.model import ALL_LAYERS, LoadModel
from tqforge.adapters.llama.client import Child
from tqforge.core import emulator
from tqforge.core.pair import Pair
from tqforge.errors import BuildError, LoadError
from tqforge.verify.device import NAME, Device, programs
from tqforge.verify.session import Session, SkippedError
from tqforge.verify.stages.device.compare import TraceResult

Tick = Callable[[int], None]
QUANTIZE = "llama-quantize"
#: Executing a matrix product on the emulator costs thousands of times what it costs on a GPU.
_LARGEST = 600 << 20
_TIMEOUT = 3600.0
_N_CTX = 256


def f16_copy(session: Session) -> Path:
    """Return the model with f16 weights: the CPU multiplies quantized weights with 8-bit activations, Metal does not.

    Raises SkippedError for a model too large to be executed on the emulator.
    """
    facts = session.facts
    if facts.size > _LARGEST:
        raise SkippedError(
            f"this stage takes an f16 copy through the whole model, and {facts.name} has {facts.size >> 20} MiB",
            "Leave --model out: the small default model shows the same.",
        )
    shop = programs(session)
    target = shop.workspace.models / (session.model_sha256 or "unknown") / f"{facts.path.stem}-f16.gguf"
    if not target.is_file():
        session.out.say("  making an f16 copy of the model")
        with fs.atomic_path(target) as temporary:
            _quantize(shop.program(QUANTIZE), facts.path, temporary)
    return target


def _quantize(program: Path, model: Path, target: Path) -> None:
    try:
        proc.run([program, "--allow-requantize", model, target, "F16"], timeout=_TIMEOUT)
    except proc.ProcessError as error:
        raise BuildError(f"{QUANTIZE} fails: {error.done.tail(3)}", where=str(model)) from error


@dataclass(frozen=True)
class TokenPlan:
    """Batches of tokens, then `steps` single tokens: `forced`, or the most likely ones."""

    batches: Sequence[Sequence[int]]
    steps: int
    forced: Sequence[int] | None = None


@dataclass
class TracedModel:
    """A child process with the model loaded, on a device or on the CPU alone."""

    session: Session
    child: Child
    device: Device | None
    _ran: Counter[str] = field(default_factory=Counter)
    _known: int = 0  # errors reported for earlier pairs

    def tokenize(self, text: str) -> list[int]:
        return self.session.tokenize(self.child, [text])[0]

    def trace(
        self, pair: Pair, plan: TokenPlan, tick: Tick, *, keep: Path | None = None, follow: Path | None = None
    ) -> TraceResult:
        """Evaluate `plan`. Cache rows are kept in the folder `keep` or replaced by those in the folder `follow`."""
        save = self.session.folder / "trace.npy"
        spec = self.session.context(pair, _N_CTX, n_batch=max(map(len, plan.batches)), offload=self.device is not None)
        request = Trace(
            spec=spec,
            batches=tuple(tuple(batch) for batch in plan.batches),
            steps=plan.steps,
            forced=tuple(plan.forced) if plan.forced else None,
            save=save,
            keep=keep,
            follow=follow,
        )
        started = time.monotonic()
        try:
            reply = self.child.ask(request, timeout=_TIMEOUT, tick=tick)
            logits = np.load(save)
        except LoadError as error:
            if found := self._dispatched()[1]:
                raise LoadError(f"The Metal emulator stopped {pair}: {found}", where=error.what) from error
            raise
        finally:
            save.unlink(missing_ok=True)
        ran, found = self._dispatched()
        return TraceResult(
            logits=logits,
            tokens=reply.tokens,
            text=reply.text,
            graphs=reply.graphs,
            dispatches=ran,
            written=reply.written,
            faults=found,
            seconds=time.monotonic() - started,
        )

    def _dispatched(self) -> tuple[dict[str, int] | None, str]:
        """Return the new dispatches and errors of the Metal emulator; None and an empty string elsewhere."""
        backend = self.device.library() if self.device and self.device.is_emulator else None
        if backend is None:
            return None, ""
        path = _report_file(self.session)
        path.unlink(missing_ok=True)
        self.child.ask(WriteEmulatorReport(backend=backend), timeout=_TIMEOUT)
        report = emulator_report.read(path)
        if not report:
            raise LoadError("The Metal emulator wrote no report.", where=str(path))
        total = Counter({name: int(count) for name, count in report["dispatches"].items()})
        new = total - self._ran
        found = emulator_report.faults(report, self._known)
        self._ran, self._known = total, len(emulator_report.errors(report))
        return dict(new), found


def _report_file(session: Session) -> Path:
    return session.folder / "metal-emulator.json"


@contextmanager
def load(session: Session, model: Path, device: Device | None, stage: str) -> Iterator[TracedModel]:
    """Start a separate child with the device loaded and scheduler logging enabled."""
    where = "device" if device else "cpu"
    env: dict[str, str | None] = {**graphs.SWITCH}
    backend = None
    if device and (library := device.library()):
        env |= {emulator.REPORT: str(_report_file(session)), emulator.QUIET: "1"}
        backend = (library, NAME)
    log = session.folder / f"llama-{stage}-{where}.log"
    target = session.target
    with Child(library=target.library, bindings=target.bindings, log=log, env=env, backend=backend) as child:
        child.stage = stage
        child.ask(LoadModel(path=model, gpu_layers=ALL_LAYERS if device else 0), timeout=_TIMEOUT)
        yield TracedModel(session, child, device)
