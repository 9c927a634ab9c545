"""A whole model with all layers on the device, against the CPU: what is written into the cache is what is read."""

from __future__ import annotations

from collections.abc import Sequence

from tqforge.adapters.console import Meter
from tqforge.domain.model import Pair
from tqforge.domain.report.schema import DeviceStage
from tqforge.domain.verify import comparing, device, texts, wholemodel
from tqforge.domain.verify.backendops import CONTROL, PAIRS
from tqforge.domain.verify.comparing import Both
from tqforge.domain.verify.session import Session

F16 = Pair("f16", "f16")
#: From 20 query rows on the matrix kernels of attention are taken, below it the vec kernels.
BATCHES = (28, 8, 8)
GREEDY = 12
_METHOD = (
    "The same tokens go through an f16 copy of the model on the CPU and with all layers on the device: a batch of "
    "28 (matrix kernels of attention), two of 8 and single tokens (vec kernels). After the prompt both follow the "
    "greedy choice of the CPU. KL is KL(CPU || device) over all positions in float64. f16/f16 gives the floor: what "
    "two backends differ by with an exact cache. A pair may come to twice that and 0.001. Above it the comparison "
    "is open while the CPU differs from itself as much when the same tokens come one by one, and failed beyond. Its "
    "distance from f16 is measured over the prompt on each backend by itself, and the two 95 % intervals must meet. "
    "On the Metal host every dispatch is counted; none, or one cache write or attention elsewhere than on the "
    "device, is a failure."
)


def pairs() -> tuple[Pair, ...]:
    """f16 first, then the pairs that are advertised for Metal."""
    return (F16, *(pair for pair in PAIRS if pair.k != CONTROL))


def run(session: Session) -> DeviceStage:
    """The CPU first, because the device follows it."""
    there = device.find(session)
    model = wholemodel.f16_copy(session)
    text = texts.quality()
    prompt = sum(BATCHES)
    single = prompt + GREEDY
    with session.meter("whole model", len(pairs()) * single * 3) as meter:
        with wholemodel.load(session, model, None, "device") as loaded:
            tokens = loaded.tokenize(text.content)[:prompt]
            batches = cut(tokens, BATCHES)
            cpu, alone = {}, {}
            for number, pair in enumerate(pairs()):
                tick = _tick(meter, 2 * number * single, f"CPU {pair}")
                cpu[pair] = loaded.trace(pair, batches, GREEDY, None, tick)
                tick = _tick(meter, (2 * number + 1) * single, f"CPU {pair}, one by one")
                alone[pair] = loaded.trace(pair, cut(tokens, [1] * prompt), GREEDY, cpu[pair].tokens, tick)
        done: list[Both] = []
        with wholemodel.load(session, model, there, "device") as loaded:
            for number, pair in enumerate(pairs(), 2 * len(pairs())):
                tick = _tick(meter, number * single, f"{there.title} {pair}")
                seen = loaded.trace(pair, batches, GREEDY, cpu[pair].tokens, tick)
                done.append(Both(str(pair), prompt, seen, cpu[pair], alone[pair]))
                session.partial(_stage(session, there.title, done))
    return _stage(session, there.title, done)


def cut(tokens: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """The tokens in batches of these sizes."""
    batches, start = [], 0
    for size in sizes:
        batches.append(list(tokens[start : start + size]))
        start += size
    return batches


def _tick(meter: Meter, before: int, note: str) -> wholemodel.Tick:
    return lambda done: meter.update(before + done, note)


def _stage(session: Session, title: str, done: Sequence[Both]) -> DeviceStage:
    control = done[0] if done else None
    rows = comparing.with_bars(
        [comparing.row(both, None if both is control else control, device.NAME) for both in done]
    )
    status, reason = comparing.verdict(rows)
    floor = rows[0].kl.value if rows else None
    return DeviceStage(
        status=status,
        reason=reason,
        device=title,
        model=f"{session.facts.path.stem}, f16 weights",
        model_sha256=session.model_sha256,
        text=texts.quality().name,
        batches=BATCHES,
        greedy=GREEDY,
        floor=floor,
        bar=None if floor is None else comparing.bar(floor),
        rows=rows,
        notes=(_METHOD,),
    )
