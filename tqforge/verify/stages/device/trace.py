"""A small model on the device: its f16 copy, a child that holds it there, and the path it is taken along."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tqforge.adapters import fs, proc
from tqforge.adapters.llama import placement
from tqforge.adapters.llama.client import Child
from tqforge.core import emulator
from tqforge.core.values import Pair
from tqforge.errors import BuildError, LoadError
from tqforge.verify import emulator_report
from tqforge.verify.device import NAME, Device, workshop
from tqforge.verify.session import DeferredError, Session
from tqforge.verify.stages.device.compare import Run

Tick = Callable[[int], None]
QUANTIZE = "llama-quantize"
#: Executing a matrix product on the emulator costs thousands of times what it costs on a GPU.
_LARGEST = 600 << 20
_TIMEOUT = 3600.0


def f16_copy(session: Session) -> Path:
    """The model with f16 weights: the CPU multiplies quantized weights with 8-bit activations, Metal does not.

    Raises DeferredError for a model too large to be executed that way.
    """
    facts = session.facts
    if facts.size > _LARGEST:
        raise DeferredError(
            f"this stage takes an f16 copy through the whole model, and {facts.name} has {facts.size >> 20} MiB",
            "Leave --model out: the small default model shows the same.",
        )
    shop = workshop(session)
    target = shop.ctx.workspace.models / (session.model_sha256 or "unknown") / f"{facts.path.stem}-f16.gguf"
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
class Way:
    """Batches of tokens, then `steps` single tokens: `forced`, or the most likely ones."""

    batches: Sequence[Sequence[int]]
    steps: int
    forced: Sequence[int] | None = None


@dataclass
class Loaded:
    """A child that holds the model, on a device or on the CPU alone."""

    session: Session
    child: Child
    device: Device | None
    _ran: Counter[str] = field(default_factory=Counter)
    _known: int = 0  # errors that an earlier pair has met

    def tokenize(self, text: str) -> list[int]:
        return self.session.tokenize(self.child, [text])[0]

    def trace(self, pair: Pair, way: Way, tick: Tick, caches: Mapping[str, Path] | None = None) -> Run:
        """Along `way`. `caches` names the folder to `keep` or to `follow`; see adapters/llama/tracing.py."""
        save = self.session.folder / "trace.npy"
        spec = {"k": pair.k, "v": pair.v, "n_ctx": 256, "n_batch": max(map(len, way.batches))}
        spec |= {"threads": self.session.settings.threads, "offload": self.device is not None}
        path = {"batches": [list(batch) for batch in way.batches], "steps": way.steps, "save": str(save)}
        path |= {"forced": list(way.forced)} if way.forced else {}
        path |= {use: str(folder) for use, folder in (caches or {}).items()}
        started = time.monotonic()
        try:
            reply = self.child.call("trace", spec | path, timeout=_TIMEOUT, tick=tick)
            logits = np.load(save)
        except LoadError as error:
            if found := self._dispatched()[1]:
                raise LoadError(f"The Metal emulator stopped {pair}: {found}", where=error.what) from error
            raise
        finally:
            save.unlink(missing_ok=True)
        ran, found = self._dispatched()
        return Run(
            logits=logits,
            tokens=reply["tokens"],
            text=reply["text"],
            graphs=reply["graphs"],
            dispatches=ran,
            written=[(name, here, there) for name, here, there in reply["written"]],
            faults=found,
            seconds=time.monotonic() - started,
        )

    def _dispatched(self) -> tuple[dict[str, int] | None, str]:
        """What the Metal emulator ran since the last question, and what it found; None and nothing elsewhere."""
        if self.device is None or not self.device.is_emulator:
            return None, ""
        report = self.child.call("emulator_report", {"backend": str(self.device.library())}, timeout=_TIMEOUT)
        total = Counter({name: int(count) for name, count in report["dispatches"].items()})
        new = total - self._ran
        found = emulator_report.faults(report, self._known)
        self._ran, self._known = total, len(emulator_report.errors(report))
        return dict(new), found


@contextmanager
def load(session: Session, model: Path, device: Device | None, stage: str) -> Iterator[Loaded]:
    """A child of its own: the session's has neither the device nor the scheduler's words."""
    where = "device" if device else "cpu"
    env: dict[str, str | None] = {**placement.SWITCH}
    backend = None
    if device and (library := device.library()):
        env |= {emulator.REPORT: str(session.folder / "metal-emulator.json"), emulator.QUIET: "1"}
        backend = (library, NAME)
    log = session.folder / f"llama-{stage}-{where}.log"
    target = session.target
    with Child(library=target.library, bindings=target.bindings, log=log, env=env, backend=backend) as child:
        child.stage = stage
        child.call("model", {"path": str(model), "gpu_layers": 999 if device else 0}, timeout=_TIMEOUT)
        yield Loaded(session, child, device)
