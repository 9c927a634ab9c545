"""Compare a whole model on the device with the CPU, down to the rows written into the cache."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqforge.core.pair import F16, Pair
from tqforge.core.reporter import Meter
from tqforge.report.judge.statuses import device_floor, with_limits
from tqforge.report.judge.thresholds import device_limit
from tqforge.report.schema.stages import DeviceStage
from tqforge.verify import corpus, device
from tqforge.verify.session import Session
from tqforge.verify.stages.device import compare, trace
from tqforge.verify.stages.device.compare import DeviceVsCpu
from tqforge.verify.stages.device.trace import Tick, TokenPlan, TracedModel
from tqforge.verify.stages.ops.backend_ops import PAIRS, REFERENCE_OP_TYPE

#: From 20 query rows on the matrix kernels of attention are taken, below it the vec kernels.
BATCHES = (28, 8, 8)
GREEDY = 12
#: How many times slower than the CPU the Metal emulator is, per token. Three runs of a pair are on the CPU.
_SLOWER = 40
_LENGTH = sum(BATCHES) + GREEDY
_METHOD = (
    "The same tokens go through an f16 copy of the model on the CPU and with all layers on the device: a batch of "
    "28 (matrix kernels of attention), two of 8 and single tokens (vec kernels). After the prompt both follow the "
    "greedy choice of the CPU. KL is KL(CPU || device) over all positions in float64. What the device writes into its "
    "cache is kept, and the CPU goes the same way once more: each of its rows is compared with the device's as soon as "
    "it is written, and replaced by it before attention reads it. Then KL may come to twice what f16/f16 differs by, "
    "and 0.001; and the device's rows may be off from the values by 1.1 times what the CPU's are, and 0.0001. Where "
    "each reads its own cache, rounding moves a few values over a boundary of the quantizer, and layer by layer more "
    "follow: that KL is shown with the KL of the CPU against itself when the same tokens come one by one, and not "
    "judged. The distance from f16 is measured over the prompt on each backend by itself, and the two 95 % intervals "
    "must meet. On the Metal emulator every dispatch is counted; none, or one cache write or attention elsewhere than "
    "on the device, is a failure."
)


def pairs() -> tuple[Pair, ...]:
    """Return f16 and the pairs that Metal's fused attention supports."""
    return (F16, *(pair for pair in PAIRS if pair.k != REFERENCE_OP_TYPE))


def run(session: Session) -> DeviceStage:
    """Run each pair on the CPU, on the device, and on the CPU again with the device's rows."""
    there = device.find(session)
    model = trace.f16_copy(session)
    done: list[DeviceVsCpu] = []
    with (
        trace.load(session, model, None, "device") as cpu,
        trace.load(session, model, there, "device") as other,
        session.meter("device", len(pairs()) * (3 + _SLOWER) * _LENGTH) as meter,
    ):
        tokens = cpu.tokenize(corpus.quality().content)[: sum(BATCHES)]
        runs = _Runs(meter, cpu, other)
        for pair in pairs():
            with tempfile.TemporaryDirectory(prefix="caches-", dir=session.folder) as folder:
                done.append(runs.of(pair, tokens, Path(folder)))
            session.partial(_stage(session, there.title, done))
    return _stage(session, there.title, done)


@dataclass
class _Runs:
    """The model on CPU and device, with the progress of all runs in tokens on the CPU."""

    meter: Meter
    cpu: TracedModel
    other: TracedModel
    through: int = 0

    def of(self, pair: Pair, tokens: Sequence[int], caches: Path) -> DeviceVsCpu:
        batches = cut(tokens, BATCHES)
        free = self.cpu.trace(pair, TokenPlan(batches, GREEDY), self._tick(f"CPU {pair}"))
        plan = TokenPlan(batches, GREEDY, free.tokens)
        alone = TokenPlan(cut(tokens, [1] * len(tokens)), GREEDY, free.tokens)
        single = self.cpu.trace(pair, alone, self._tick(f"CPU {pair}, one by one"))
        seen = self.other.trace(pair, plan, self._tick(f"device {pair}", _SLOWER), keep=caches)
        same = self.cpu.trace(pair, plan, self._tick(f"CPU {pair}, same rows"), follow=caches)
        return DeviceVsCpu(pair, len(tokens), device=seen, cpu=free, single=single, same=same)

    def _tick(self, note: str, weight: int = 1) -> Tick:
        start, self.through = self.through, self.through + weight * _LENGTH
        return lambda done: self.meter.update(start + weight * done, note)


def cut(tokens: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Cut the tokens into batches of these sizes."""
    batches, start = [], 0
    for size in sizes:
        batches.append(list(tokens[start : start + size]))
        start += size
    return batches


def _stage(session: Session, title: str, done: Sequence[DeviceVsCpu]) -> DeviceStage:
    control = done[0] if done else None
    rows = with_limits([compare.row(both, None if both is control else control, device.NAME) for both in done])
    floor = device_floor(rows[0]) if rows else None
    return DeviceStage(
        device=title,
        model=f"{session.facts.path.stem}, f16 weights",
        model_sha256=session.model_sha256,
        text=corpus.quality().name,
        batches=BATCHES,
        greedy=GREEDY,
        floor=floor,
        limit=None if floor is None else device_limit(floor),
        rows=rows,
        notes=(_METHOD,),
    )
