"""Prefill, decode and end-to-end at depth: all pairs in turns, through the bindings and by llama-bench."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tqforge.adapters.console import Meter
from tqforge.adapters.llama.client import Child
from tqforge.domain.model import Pair
from tqforge.domain.report.schema import SpeedRow, SpeedStage, Status
from tqforge.domain.verify import llamabench, rates, texts
from tqforge.domain.verify.rates import Sample
from tqforge.domain.verify.session import DeferredError, Session, padded
from tqforge.domain.verify.settings import Settings

_METHOD = (
    "All pairs are open at once and take turns, each round in another order. A rate is the median over the rounds, "
    "its bounds are the 95 % bootstrap interval of that median; a ratio is taken within a round. End-to-end is one "
    "prompt of `depth` tokens and the tokens generated after it, measured once. The share that grows with depth is "
    "the part of the time per token that an empty cache does not have: reading K and V, attention above all."
)


@dataclass(frozen=True)
class Step:
    """One run of one pair: `count` tokens after the first `depth`."""

    phase: rates.Phase
    index: int
    depth: int
    count: int
    round: int


def run(session: Session) -> SpeedStage:
    """Warm up, then depth by depth: fill all pairs, measure all pairs in turns."""
    settings, pairs = session.settings, session.settings.with_control
    depths = usable_depths(settings, session.facts.trained_context)
    child = session.model("speed")
    n_ctx = padded(depths[-1] + settings.speed_prefill)
    tokens = _tokens(session, child, n_ctx)
    contexts = [session.context(pair, n_ctx) for pair in pairs]
    opened = child.call("bench_open", {"contexts": contexts, "threads": settings.threads}, timeout=settings.timeout)
    taken: list[Sample] = []
    try:
        for index in range(len(pairs)):
            _time(session, child, Step("decode", index, 0, 2, -1), tokens)
        steps = plan(depths, len(pairs), settings)
        with session.meter("speed", sum(_weight(step) for step in steps)) as meter:
            for sample in _samples(session, child, steps, tokens, meter):
                taken.append(sample)
                session.partial(_stage(session, taken, (), opened["cpus"]))
    finally:
        if child.alive:
            child.call("bench_close", {}, timeout=settings.timeout)
    compared, missing = _by_llama_bench(session, depths)
    stage = _stage(session, taken, compared, opened["cpus"])
    return stage.model_copy(update={"notes": (*stage.notes, *missing)})


def usable_depths(settings: Settings, trained: int) -> tuple[int, ...]:
    """The depths that leave the model room for a prompt. Raises DeferredError when there is none."""
    depths = tuple(depth for depth in settings.speed_depths if depth + settings.speed_prefill <= trained)
    if not depths:
        raise DeferredError(f"no depth of {settings.speed_depths} fits into the {trained} tokens of the model")
    return depths


def plan(depths: Sequence[int], pairs: int, settings: Settings) -> list[Step]:
    """Every run in its order. A fill (phase end-to-end) comes before the rounds at its depth."""
    steps, before = [], 0
    for depth in depths:
        if depth > before:
            steps += [Step("end-to-end", index, before, depth - before, 0) for index in range(pairs)]
        for number in range(settings.speed_rounds):
            turn = [(number + place) % pairs for place in range(pairs)]
            steps += [Step("decode", index, depth, settings.speed_decode, number) for index in turn]
            steps += [Step("prefill", index, depth, settings.speed_prefill, number) for index in turn]
        before = max(before, depth)
    return steps


def _weight(step: Step) -> float:
    """Roughly how long a run takes: a single token costs as much as several in a batch."""
    return step.count * (8 if step.phase == "decode" else 1)


def _samples(session: Session, child: Child, steps: list[Step], tokens: list[int], meter: Meter) -> Iterator[Sample]:
    """One per run; of a fill the time of the whole prompt with the first generated tokens after it."""
    pairs = [str(pair) for pair in session.settings.with_control]
    filled = [0.0] * len(pairs)
    done = 0.0
    for step in steps:
        pair = pairs[step.index]
        reply = _time(session, child, step, tokens)
        done += _weight(step)
        meter.update(done, f"{pair} {step.phase} at {step.depth}")
        if step.phase == "end-to-end":
            filled[step.index] += reply["seconds"]
            continue
        yield Sample(pair, step.depth, step.phase, step.round, step.count, reply["seconds"], reply["cpu"])
        if step.phase == "decode" and step.round == 0 and step.depth:
            total = filled[step.index] + reply["seconds"]
            yield Sample(pair, step.depth, "end-to-end", 0, step.depth + step.count, total)


def _time(session: Session, child: Child, step: Step, tokens: list[int]) -> dict[str, Any]:
    some = tokens[step.depth : step.depth + step.count]
    args = {"index": step.index, "keep": step.depth, "tokens": some, "single": step.phase == "decode"}
    return child.call("bench_run", args, timeout=session.settings.timeout, tick=lambda _done: None)


def _tokens(session: Session, child: Child, count: int) -> list[int]:
    """Tokens of the text in its order, from its beginning again where it is too short."""
    found = session.tokenize(child, [texts.hay().content])[0]
    return (found * (count // len(found) + 1))[:count]


def _by_llama_bench(session: Session, depths: Sequence[int]) -> tuple[tuple[SpeedRow, ...], tuple[str, ...]]:
    """Its rows, or the reason why there are none."""
    settings = session.settings
    if not settings.speed_llama_bench:
        return (), ("llama-bench was not asked for (--full and `tqforge bench` do).",)
    program = session.target.library / llamabench.PROGRAM
    if not program.is_file():
        return (), ("llama-bench is not in the build: `tqforge run -- llama-bench --help` makes it.",)
    taken: list[Sample] = []
    rounds = max(2, settings.speed_rounds // 2)
    with session.meter("llama-bench", rounds * len(settings.with_control)) as meter:
        for number in range(rounds):
            for pair in settings.with_control:
                taken += _one_llama_bench(session, pair, depths, number)
                meter.update(len({(sample.pair, sample.round) for sample in taken}), str(pair))
    return rates.rows_of(taken), ()


def _one_llama_bench(session: Session, pair: Pair, depths: Sequence[int], number: int) -> list[Sample]:
    settings = session.settings
    argv = llamabench.arguments(
        session.target.library / llamabench.PROGRAM,
        session.facts.path,
        pair,
        depths,
        prefill=settings.speed_prefill,
        decode=settings.speed_decode,
        threads=settings.threads,
        gpu=session.gpu_layers,
    )
    printed = llamabench.run(argv, library=session.target.library, timeout=settings.timeout)
    return llamabench.samples(printed, str(pair), number)


def _stage(session: Session, taken: list[Sample], compared: tuple[SpeedRow, ...], cpus: list[int]) -> SpeedStage:
    repeated = [sample for sample in taken if sample.phase != "end-to-end"]
    width, share = rates.spread(repeated), rates.cpu_share(repeated, session.settings.threads)
    gpu = session.gpu_layers > 0
    noise = rates.noise(width, None if gpu else share)
    rows = rates.rows_of(taken)
    status, reason = verdict(rows)
    place = f"Threads stayed on CPUs {', '.join(map(str, cpus))}." if cpus else "This system pins no threads."
    return SpeedStage(
        status=status,
        reason=reason,
        threads=session.settings.threads,
        rows=rows,
        llama_bench=compared,
        spread=width,
        busy=share,
        notes=(_METHOD, place, *((noise,) if noise else ())),
    )


def verdict(rows: Sequence[SpeedRow]) -> tuple[Status, str]:
    """Failed when a pair with tq3_0 seems to fall back to a slow path; stock pairs that do are named in their rows."""
    if not rows:
        return Status.INCONCLUSIVE, "nothing was measured"
    slow = [row for row in rows if row.note and "tq3_0" in row.pair]
    if slow:
        shown = ", ".join(f"{row.pair} ({row.phase} at {row.depth})" for row in slow)
        return Status.FAILED, f"over 2x slower than f16, a fall-back is suspected: {shown}"
    return Status.PASSED, ""
