"""Prefill, decode and end-to-end at depth: all pairs in turns, through the bindings and by llama-bench."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from tqforge.adapters.console import Meter
from tqforge.report.render.sentences.facts import noise
from tqforge.report.schema.rows import SpeedRow
from tqforge.report.schema.stages import SpeedStage
from tqforge.verify import corpus
from tqforge.verify.session import Session, padded
from tqforge.verify.stages.speed import contexts as lanes
from tqforge.verify.stages.speed import llama_bench, rates, schedule, targets
from tqforge.verify.stages.speed.contexts import Lane
from tqforge.verify.stages.speed.rates import Sample
from tqforge.verify.stages.speed.schedule import Patience, Step

_METHOD = (
    "Contexts of all pairs stay open; each round measures them in a rotated order. A rate is the median over the "
    "rounds with its 95 % bootstrap interval; a ratio is taken within a round. End-to-end is a prompt of {prefill} "
    "tokens and the {decode} tokens generated after it. The share of attention is the part of the time per token that "
    "depth 0 does not have: reading K and V, mostly in attention."
)


def run(session: Session) -> SpeedStage:
    """Warm up, then depth by depth: fill all pairs, measure all pairs in turns."""
    settings = session.settings
    depths = schedule.usable_depths(settings, session.facts)
    n_ctx = padded(depths[-1] + settings.speed_prefill + settings.speed_decode)
    tokens = _tokens(session, n_ctx)
    taken: list[Sample] = []
    with _open(session, n_ctx) as opened:
        places = _places(opened)
        for lane, index in places:
            lanes.time(session, lane, index, 0, tokens[:2], single=True)
        steps = schedule.plan(depths, len(places), settings)
        with session.meter("speed", sum(map(schedule.weight, steps))) as meter:
            for sample in _samples(session, places, steps, tokens, meter):
                taken.append(sample)
                session.partial(_stage(session, taken, (), opened))
    compared, missing = _by_llama_bench(session, depths, opened[0].cpus)
    stage = _stage(session, taken, compared, opened)
    return stage.model_copy(update={"notes": (*stage.notes, *missing)})


@contextmanager
def _open(session: Session, n_ctx: int) -> Iterator[list[Lane]]:
    """The library under test, and the one beside it; filled caches go from one to the other through files."""
    with ExitStack() as stack:
        own = lanes.own(session, n_ctx)
        stack.callback(_close, session, own)
        opened = [own]
        if session.target.beside:
            opened.append(lanes.beside(session, session.target.beside, n_ctx))
            stack.callback(opened[1].child.close)
            if not session.fills:
                session.fills = session.folder / "fills"
                stack.callback(_forget_fills, session)
        yield opened


def _close(session: Session, lane: Lane) -> None:
    if lane.child.alive:
        lane.child.call("bench_close", {}, timeout=session.settings.timeout)


def _forget_fills(session: Session) -> None:
    if session.fills:
        shutil.rmtree(session.fills, ignore_errors=True)
        session.fills = None


def _places(opened: Sequence[Lane]) -> list[tuple[Lane, int]]:
    """Every context; those of one pair side by side."""
    found = [(lane, index) for lane in opened for index in range(len(lane.pairs))]
    order = list(opened[0].pairs)
    return sorted(found, key=lambda place: order.index(place[0].pairs[place[1]]))


def _samples(
    session: Session, places: Sequence[tuple[Lane, int]], steps: Sequence[Step], tokens: Sequence[int], meter: Meter
) -> Iterator[Sample]:
    """One per run, and after each prefill one of the whole answer."""
    patience, done = Patience(session.settings.speed_patience), 0.0
    for step in steps:
        lane, index = places[step.place]
        meter.update(done, f"{lane.pairs[index]}{f' of {lane.build}' * bool(lane.build)} {step.what} at {step.depth}")
        done += schedule.weight(step)
        if step.what == "fill":
            lanes.fill(session, lane, index, tokens[: step.depth])
        elif not patience.skips(step):
            seconds = 0.0
            for sample in _run(session, lane, index, step, tokens):
                yield sample
                seconds = sample.seconds
            patience.note(step, seconds)
    meter.update(done, "")


def _run(session: Session, lane: Lane, index: int, step: Step, tokens: Sequence[int]) -> Iterator[Sample]:
    single, end = step.what == "decode", step.depth + step.count
    some = tokens[step.depth : end]
    reply = lanes.time(session, lane, index, step.depth, some, single=single)
    first = Sample(
        lane.pairs[index],
        step.depth,
        "decode" if single else "prefill",
        step.round,
        step.count,
        reply["seconds"],
        reply["cpu"],
        lane.build,
    )
    yield first
    if not single:
        more = tokens[end : end + session.settings.speed_decode]
        reply = lanes.time(session, lane, index, end, more, single=True)
        seconds, cpu = first.seconds + reply["seconds"], first.cpu + reply["cpu"]
        yield replace(first, phase="end-to-end", tokens=step.count + len(more), seconds=seconds, cpu=cpu)


def _tokens(session: Session, count: int) -> list[int]:
    """Tokens of the text in its order, from its beginning again where it is too short."""
    found = session.tokenize(session.model("speed"), [corpus.hay().content])[0]
    return (found * (count // len(found) + 1))[:count]


def _by_llama_bench(
    session: Session, depths: Sequence[int], cpus: Sequence[int]
) -> tuple[tuple[SpeedRow, ...], tuple[str, ...]]:
    """Its rows, or the reason why there are none."""
    settings = session.settings
    if not settings.speed_llama_bench:
        return (), ("llama-bench was not asked for (--full and `tqforge bench` do).",)
    program = session.target.library / llama_bench.PROGRAM
    if not program.is_file():
        return (), ("llama-bench is not in the build: `tqforge run -- llama-bench --help` makes it.",)
    taken: list[Sample] = []
    rounds = max(2, settings.speed_rounds // 2)
    with session.meter("llama-bench", rounds * len(settings.with_control)) as meter:
        for number in range(rounds):
            for pair in settings.with_control:
                argv = llama_bench.arguments(
                    program,
                    session.facts.path,
                    pair,
                    depths,
                    prefill=settings.speed_prefill,
                    decode=settings.speed_decode,
                    threads=settings.threads,
                    gpu=session.gpu_layers,
                    cpus=cpus,
                )
                printed = llama_bench.run(argv, library=session.target.library, timeout=llama_bench.TIMEOUT)
                taken += llama_bench.samples(printed, pair, number)
                meter.update(len({(sample.pair, sample.round) for sample in taken}), str(pair))
    loud = noise(rates.spread(taken))
    return rates.rows_of(taken), (f"llama-bench: {loud}",) if loud else ()


def _stage(
    session: Session, taken: Sequence[Sample], compared: tuple[SpeedRow, ...], opened: Sequence[Lane]
) -> SpeedStage:
    settings = session.settings
    own = [sample for sample in taken if not sample.build]
    cpus = ", ".join(map(str, opened[0].cpus))
    place = f"Threads stayed on CPUs {cpus}." if cpus else "This system pins no threads."
    method = _METHOD.format(prefill=settings.speed_prefill, decode=settings.speed_decode)
    return SpeedStage(
        threads=settings.threads,
        rows=rates.rows_of(own),
        llama_bench=compared,
        compared=rates.rows_of(sample for sample in taken if sample.build),
        compared_with=str(session.target.beside or ""),
        ratios=(*targets.against_stock(own), *targets.against_build(taken)),
        spread=rates.spread(taken),
        busy=None if session.gpu_layers > 0 else rates.cpu_share(taken, settings.threads),
        notes=(method, place, *_beyond(session, own)),
    )


def _beyond(session: Session, own: Sequence[Sample]) -> tuple[str, ...]:
    """Where the text was longer than what the model was trained for."""
    trained, most = session.facts.trained_context, max((sample.depth for sample in own), default=0)
    if most + session.settings.speed_prefill <= trained:
        return ()
    return (f"At depth {most:,} the text is longer than the {trained:,} tokens the model was trained for: rates only.",)
