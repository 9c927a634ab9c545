"""Measure prefill, decode and end-to-end at depth, all pairs in turns, and with llama-bench."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tqforge.adapters.llama.api.measure import CloseBench
from tqforge.core.reporter import Meter
from tqforge.report.render.sentences.facts import noise
from tqforge.report.schema.rows import SpeedRow
from tqforge.report.schema.stages import SpeedStage
from tqforge.verify import corpus
from tqforge.verify.session import Session, padded
from tqforge.verify.stages.speed import contexts, llama_bench, rates, schedule, targets
from tqforge.verify.stages.speed.contexts import BenchContexts
from tqforge.verify.stages.speed.rates import Sample
from tqforge.verify.stages.speed.schedule import Patience, Step


@dataclass(frozen=True)
class _Opened:
    """The contexts of each build, and the folder of snapshots of filled caches."""

    builds: Sequence[BenchContexts]
    snapshots: Path | None


_METHOD = (
    "Contexts of all pairs stay open; each round measures them in a rotated order. A rate is the median over the "
    "rounds with its 95 % bootstrap interval; a ratio is taken within a round. End-to-end is a prompt of {prefill} "
    "tokens and the {decode} tokens generated after it. The share of attention is the part of the time per token that "
    "depth 0 does not have: reading K and V, mostly in attention."
)


def run(session: Session) -> SpeedStage:
    """Warm up, then fill and measure all pairs depth by depth."""
    settings = session.settings
    depths = schedule.usable_depths(settings, session.facts)
    n_ctx = padded(depths[-1] + settings.speed_prefill + settings.speed_decode)
    tokens = _tokens(session, n_ctx)
    taken: list[Sample] = []
    with _open(session, n_ctx) as opened:
        places = _places(opened.builds)
        for lane, index in places:
            contexts.time(session, lane, index, 0, tokens[:2], single=True)
        steps = schedule.plan(depths, len(places), settings)
        with session.meter("speed", sum(map(schedule.weight, steps))) as meter:
            for sample in _samples(session, opened, steps, tokens, meter):
                taken.append(sample)
                session.partial(_stage(session, taken, (), opened.builds))
    compared, missing = _by_llama_bench(session, depths, opened.builds[0].cpus)
    stage = _stage(session, taken, compared, opened.builds)
    return stage.model_copy(update={"notes": (*stage.notes, *missing)})


@contextmanager
def _open(session: Session, n_ctx: int) -> Iterator[_Opened]:
    """Open the library under test and the second build; snapshots of filled caches are shared through files."""
    with ExitStack() as stack:
        own = contexts.own(session, n_ctx)
        stack.callback(_close, session, own)
        opened, snapshots = [own], session.target.cache_dir
        if session.target.compare_with:
            opened.append(contexts.second_build(session, session.target.compare_with, n_ctx))
            stack.callback(opened[1].child.close)
            if snapshots is None:
                name = stack.enter_context(TemporaryDirectory(prefix="snapshots-", dir=session.folder))
                snapshots = Path(name)
        yield _Opened(opened, snapshots)


def _close(session: Session, own: BenchContexts) -> None:
    if own.child.alive:
        session.ask(own.child, CloseBench())


def _places(opened: Sequence[BenchContexts]) -> list[tuple[BenchContexts, int]]:
    """Return every context; those of one pair are adjacent."""
    found = [(lane, index) for lane in opened for index in range(len(lane.pairs))]
    order = list(opened[0].pairs)
    return sorted(found, key=lambda place: order.index(place[0].pairs[place[1]]))


def _samples(
    session: Session, opened: _Opened, steps: Sequence[Step], tokens: Sequence[int], meter: Meter
) -> Iterator[Sample]:
    """Yield one sample per run, and one of the whole answer after each prefill."""
    places = _places(opened.builds)
    patience, done = Patience(session.settings.speed_patience), 0.0
    for step in steps:
        lane, index = places[step.place]
        meter.update(done, f"{lane.pairs[index]}{f' of {lane.build}' * bool(lane.build)} {step.what} at {step.depth}")
        done += schedule.weight(step)
        if step.what == "fill":
            contexts.fill(session, lane, index, tokens[: step.depth], opened.snapshots)
        elif not patience.skips(step):
            seconds = 0.0
            for sample in _run(session, lane, index, step, tokens):
                yield sample
                seconds = sample.seconds
            patience.note(step, seconds)
    meter.update(done, "")


def _run(session: Session, lane: BenchContexts, index: int, step: Step, tokens: Sequence[int]) -> Iterator[Sample]:
    single, end = step.what == "decode", step.depth + step.count
    some = tokens[step.depth : end]
    reply = contexts.time(session, lane, index, step.depth, some, single=single)
    first = Sample(
        lane.pairs[index],
        step.depth,
        "decode" if single else "prefill",
        step.round,
        step.count,
        reply.seconds,
        reply.cpu,
        lane.build,
    )
    yield first
    if not single:
        more = tokens[end : end + session.settings.speed_decode]
        reply = contexts.time(session, lane, index, end, more, single=True)
        seconds, cpu = first.seconds + reply.seconds, first.cpu + reply.cpu
        yield replace(first, phase="end-to-end", tokens=step.count + len(more), seconds=seconds, cpu=cpu)


def _tokens(session: Session, count: int) -> list[int]:
    """Return tokens of the text, repeated if it is too short."""
    found = session.tokenize(session.model("speed"), [corpus.hay().content])[0]
    return (found * (count // len(found) + 1))[:count]


def _by_llama_bench(
    session: Session, depths: Sequence[int], cpus: Sequence[int]
) -> tuple[tuple[SpeedRow, ...], tuple[str, ...]]:
    """Return the rows of llama-bench, or the reason why there are none."""
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
    session: Session, taken: Sequence[Sample], compared: tuple[SpeedRow, ...], opened: Sequence[BenchContexts]
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
        compared_with=str(session.target.compare_with or ""),
        ratios=(*targets.against_stock(own), *targets.against_build(taken)),
        spread=rates.spread(taken),
        busy=None if session.gpu_layers > 0 else rates.cpu_share(taken, settings.threads),
        notes=(method, place, *_beyond(session, own)),
    )


def _beyond(session: Session, own: Sequence[Sample]) -> tuple[str, ...]:
    """Note where the text exceeds the trained context of the model."""
    trained, most = session.facts.trained_context, max((sample.depth for sample in own), default=0)
    if most + session.settings.speed_prefill <= trained:
        return ()
    return (f"At depth {most:,} the text is longer than the {trained:,} tokens the model was trained for: rates only.",)
