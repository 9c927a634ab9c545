"""Rates, ratios and noise as pure functions; the stage on a child that answers from a table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sessions import FACTS, KEYS

from tqforge.adapters.console import Output
from tqforge.adapters.llama.api.measure import (
    BenchFilled,
    BenchOpened,
    BenchTime,
    CloseBench,
    FillBench,
    OpenBench,
    RunBench,
)
from tqforge.adapters.llama.api.messages import Done, Message, Request
from tqforge.adapters.llama.api.model import CheckOrigin, Loaded, Tokenize, TokenLists, TypeInfo
from tqforge.adapters.llama.child import symbols, timing
from tqforge.core.pair import F16, Pair
from tqforge.errors import LoadError, UsageError
from tqforge.report.judge import select, statuses
from tqforge.report.judge.select import TargetStatus
from tqforge.report.render.sentences.reasons import reasons
from tqforge.report.schema.base import Interval, StageStatus
from tqforge.report.schema.rows import SpeedRow
from tqforge.report.schema.stages import SpeedStage
from tqforge.verify import settings
from tqforge.verify.session import Session, SkippedError, Target
from tqforge.verify.stages.speed import contexts, llama_bench, rates, schedule, targets
from tqforge.verify.stages.speed import stage as speed
from tqforge.verify.stages.speed.rates import Sample

Q, Q8_0, Q4_0, TQ3_0, MIXED = map(Pair.parse, ("q", "q8_0", "q4_0", "tq3_0", "q8_0/tq3_0"))
CHOSEN = replace(
    settings.QUICK, pairs=(Pair.parse("tq3_0"),), speed_depths=(0, 64), speed_prefill=32, speed_decode=4, threads=2
)


def sample(pair: Pair, seconds: float, *, number: int = 0, depth: int = 0) -> Sample:
    return Sample(pair, depth, "decode", number, 10, seconds, cpu=2 * seconds)


def test_a_ratio_is_taken_within_a_round() -> None:
    own = [sample(Q, 2.0, number=0), sample(Q, 20.0, number=1), sample(Q, 200.0, number=2)]
    control = [sample(F16, 1.0, number=0), sample(F16, 10.0, number=1), sample(F16, 100.0, number=2)]
    ratio = rates.ratios(own, control)
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == (0.5, 0.5, 0.5)
    assert rates.ratios(own, []) is None


def test_the_interval_of_a_median_lies_within_the_values() -> None:
    band = rates.median_interval([1.0, 2.0, 9.0])
    assert band.value == 2.0
    assert 1.0 <= band.low <= 2.0 <= band.high <= 9.0
    with pytest.raises(ValueError, match="no values"):
        rates.median_interval([])


def test_rows_flag_what_is_over_two_times_slower() -> None:
    rows = rates.rows_of([sample(F16, 1.0), sample(Q4_0, 2.1), sample(TQ3_0, 1.9)])
    assert [bool(select.slower_than(row)) for row in rows] == [False, True, False]
    assert statuses.speed(SpeedStage(rows=rows)) == statuses.PASSED
    slow = rates.rows_of([sample(F16, 1.0), sample(TQ3_0, 2.5)])
    verdict = statuses.speed(SpeedStage(rows=slow))
    assert verdict.status is StageStatus.FAILED
    assert "tq3_0/tq3_0 (decode at 0)" in reasons(verdict.reasons)


def test_tq3_0_is_held_against_the_stock_pair_beside_it_and_against_f16() -> None:
    assert [rates.neighbour(pair) for pair in (TQ3_0, MIXED, Pair("tq3_0", "f16"), Q8_0)] == [
        Q4_0,
        Q8_0,
        F16,
        F16,
    ]
    pairs = {F16: 1.0, Q8_0: 0.4, MIXED: 0.9, Q4_0: 3.0, TQ3_0: 2.5}
    rows = {row.pair: row for row in rates.rows_of([sample(pair, seconds) for pair, seconds in pairs.items()])}
    mixed, own, plain = rows[MIXED], rows[TQ3_0], rows[F16]
    assert (mixed.neighbour, own.neighbour, plain.neighbour) == (Q8_0, Q4_0, None)
    assert mixed.ratio_neighbour is not None
    assert mixed.ratio_neighbour.value == pytest.approx(0.4 / 0.9)
    assert select.slower_than(mixed) == [Q8_0]
    assert select.slower_than(own) == [F16]  # q4_0 itself is slow and excuses nothing
    assert plain.ratio_neighbour is None
    alone = rates.rows_of([sample(F16, 1.0), sample(TQ3_0, 1.5)])[1]
    assert (alone.neighbour, select.slower_than(alone)) == (F16, [])


def rounds(pair: Pair, seconds: list[float], *, depth: int = 4096, build: str = "") -> list[Sample]:
    return [replace(sample(pair, s, number=i, depth=depth), build=build) for i, s in enumerate(seconds)]


def test_ratios_are_judged_by_their_aims() -> None:
    taken = [
        *rounds(F16, [1.0, 1.0, 1.0]),
        *rounds(Q4_0, [1.0, 1.1, 1.2]),
        *rounds(TQ3_0, [1.0, 1.1, 1.3]),
        *rounds(Q8_0, [1.0, 1.0, 1.0], depth=0),
        *rounds(MIXED, [1.2, 1.2, 1.2], depth=0),
    ]
    found = {(one.pair, one.against, one.depth): one for one in targets.against_stock(taken)}
    beside_q4 = found[TQ3_0, Q4_0, 4096]
    assert (beside_q4.ratio.value, beside_q4.target, beside_q4.rounds) == (1.0, 0.95, 3)
    assert select.target_status(beside_q4) is TargetStatus.NOT_DECIDED  # one round of three is below the aim
    assert select.target_status(found[TQ3_0, F16, 4096]) is TargetStatus.NOT_DECIDED
    assert select.target_status(found[MIXED, Q8_0, 0]) is TargetStatus.MISSED
    assert select.target_status(beside_q4.model_copy(update={"target": 0.9})) is TargetStatus.MET
    assert select.target_status(beside_q4.model_copy(update={"target": None})) is None
    assert select.target_status(beside_q4.model_copy(update={"target": 0.9, "rounds": 1})) is TargetStatus.NOT_DECIDED
    assert len(found) == 3


def test_an_aim_at_one_depth_is_none_at_another() -> None:
    taken = [*rounds(Q4_0, [1.0, 1.0], depth=0), *rounds(TQ3_0, [9.0, 9.0], depth=0)]
    (one,) = targets.against_stock(taken)
    assert one.target is None


def test_another_build_is_compared_pair_by_pair_in_the_same_round() -> None:
    taken = [*rounds(TQ3_0, [1.0, 2.0]), *rounds(TQ3_0, [10.0, 20.0, 5.0], build="old")]
    (one,) = targets.against_build(taken)
    assert (one.against, one.build) == (TQ3_0, "old")
    assert (one.ratio.value, one.rounds) == (10.0, 2)
    assert not targets.against_build(taken[:2])
    assert not targets.against_stock(taken)


def test_the_share_that_grows_with_depth() -> None:
    deep, empty = rates.rows_of([sample(Q, 4.0, depth=4096), sample(Q, 1.0)])
    assert deep.depth_share == pytest.approx(0.75)
    assert empty.depth_share is None


def test_the_spread_of_rates_and_the_share_of_the_cpus() -> None:
    quiet = [sample(Q, 1.0 + number / 100, number=number) for number in range(5)]
    assert rates.spread(quiet) == pytest.approx(0.01, abs=0.002)
    assert (rates.cpu_share(quiet, 2), rates.cpu_share(quiet, 4)) == pytest.approx((1.0, 0.5))
    loud = [sample(Q, 1.0 + number, number=number) for number in range(5)]
    assert (rates.spread(loud) or 0) > 0.3
    assert rates.spread([sample(Q, 1.0)]) is None
    assert rates.cpu_share([], 2) is None


def test_threads_are_spread_over_cores() -> None:
    cores = {0: "0,4", 1: "0,4", 2: "1,5", 3: "1,5"}
    assert timing.spread_over_cores([0, 1, 2, 3], cores) == [0, 2, 1, 3]
    assert timing.spread_over_cores([1, 3], cores) == [1, 3]
    assert timing.spread_over_cores([], {}) == []


def test_every_pair_is_filled_before_a_depth_is_measured_in_turns() -> None:
    steps = schedule.plan((0, 64), 2, CHOSEN)
    fills = [number for number, step in enumerate(steps) if step.what == "fill"]
    assert [(steps[i].place, steps[i].depth, steps[i].count) for i in fills] == [(0, 64, 64), (1, 64, 64)]
    assert all(step.depth == 0 for step in steps[: fills[0]])
    assert all(step.depth == 64 for step in steps[fills[-1] + 1 :])
    first = [step.place for step in steps if (step.what, step.depth, step.round) == ("decode", 0, 0)]
    second = [step.place for step in steps if (step.what, step.depth, step.round) == ("decode", 0, 1)]
    assert (first, second) == ([0, 1], [1, 0])


def test_depths_that_do_not_fit_are_left_out() -> None:
    assert schedule.usable_depths(settings.FULL, replace(FACTS, trained_context=4096)) == (0, 2048)
    with pytest.raises(SkippedError, match="fits into"):
        schedule.usable_depths(settings.FULL, replace(FACTS, trained_context=100))
    rotary = replace(FACTS, trained_context=100, rotary=True)
    assert schedule.usable_depths(settings.FULL, rotary) == settings.FULL.speed_depths
    assert settings.parse_fills("4k,0,2048") == (0, 2048, 4096)
    with pytest.raises(UsageError):
        settings.parse_fills("deep")


def test_a_slow_run_is_not_repeated_more_than_a_spread_needs() -> None:
    patience = schedule.Patience(20.0)
    slow, quick = schedule.Step("prefill", 1, 64, 32), schedule.Step("prefill", 0, 64, 32)
    patience.note(slow, 21.0)
    patience.note(quick, 19.0)
    assert [patience.skips(replace(slow, round=number)) for number in range(4)] == [False, False, True, True]
    assert not patience.skips(replace(quick, round=4))
    assert not patience.skips(replace(slow, what="decode", round=4))
    assert not patience.skips(replace(slow, depth=0, round=4))


class FakeChild:
    """Answers as a worker does; the second pair is three times slower, and all of another build ten times."""

    alive = True

    def __init__(self, slower: float = 1.0) -> None:
        self.asked: list[Request[Any]] = []
        self.closed = False
        self.slower = slower
        types = tuple(
            TypeInfo(name=name, id=index, block=32, bytes=14, quantized=True)
            for index, name in enumerate(("f16", "tq3_0"))
        )
        self.loaded = Loaded(library="", bindings="", declared=1, fields=1, system="", gpu=False, types=types)

    def close(self) -> None:
        self.closed = True

    def ask(self, request: Request[Any], **_more: object) -> Message:
        self.asked.append(request)
        if isinstance(request, Tokenize):
            return TokenLists(tokens=((5, 6, 7),))
        if isinstance(request, OpenBench):
            return BenchOpened(cpus=(0, 1))
        if isinstance(request, RunBench):
            seconds = self.slower * len(request.tokens) * (0.03 if request.index else 0.01)
            return BenchTime(seconds=seconds, cpu=2 * seconds)
        return BenchFilled(read=False) if isinstance(request, FillBench) else Done()

    def runs(self) -> list[RunBench]:
        return [request for request in self.asked if isinstance(request, RunBench)]

    def fills(self) -> list[FillBench]:
        return [request for request in self.asked if isinstance(request, FillBench)]


def bench_session(tmp_path: Path) -> Session:
    target = Target(library=tmp_path, bindings=tmp_path, provenance=KEYS, gpu=False)
    return Session(out=Output(quiet=True), target=target, settings=CHOSEN, facts=FACTS, folder=tmp_path)


def test_the_stage_measures_and_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, child = bench_session(tmp_path), FakeChild()
    monkeypatch.setattr(Session, "model", lambda *_: child)
    stage = speed.run(session)
    assert child.asked[-1] == CloseBench()
    assert statuses.speed(stage).status is StageStatus.FAILED
    assert {row.phase for row in stage.rows} == {"prefill", "decode", "end-to-end"}
    wanted = (TQ3_0, "decode", 64)
    ratio = next(row.ratio_f16 for row in stage.rows if (row.pair, row.phase, row.depth) == wanted)
    assert ratio is not None
    assert ratio.value == pytest.approx(1 / 3)
    assert stage.busy == pytest.approx(1.0)
    assert stage.spread == pytest.approx(0.0)
    assert any("llama-bench was not asked for" in note for note in stage.notes)
    assert all(len(run.tokens) for run in child.runs())
    assert {run.keep for run in child.runs()} == {0, 64, 32, 96}  # after each prompt its answer
    assert [(fill.index, len(fill.tokens), fill.state) for fill in child.fills()] == [(0, 64, None), (1, 64, None)]
    whole = next(row for row in stage.rows if (row.pair, row.phase, row.depth) == (F16, "end-to-end", 64))
    assert whole.rate.value == pytest.approx(100)
    assert whole.rounds == 3


def test_another_build_takes_its_turns_and_gets_the_filled_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, own, other = bench_session(tmp_path), FakeChild(), FakeChild(slower=10)
    old = tmp_path / "old"
    session.target = replace(session.target, compare_with=old)
    started: list[dict[str, Any]] = []

    def start(**more: Any) -> FakeChild:
        started.append(more)
        return other

    monkeypatch.setattr(Session, "model", lambda *_: own)
    monkeypatch.setattr(contexts, "Child", start)
    stage = speed.run(session)
    assert started[0]["library"] == old
    assert started[0]["env"]["LD_LIBRARY_PATH"] == str(old)
    assert CheckOrigin(folder=old) in other.asked
    assert other.closed
    states = [[fill.state for fill in child.fills()] for child in (own, other)]
    assert states[0] == states[1]
    assert all(states[0])
    assert not list(tmp_path.glob("snapshots-*"))
    assert {row.pair for row in stage.compared} == {F16, TQ3_0}
    ratio = next(one for one in stage.ratios if (one.against, one.build) == (TQ3_0, "old") and one.depth == 64)
    assert ratio.ratio.value == pytest.approx(10)
    assert stage.compared_with == str(old)


def test_a_filled_cache_is_named_by_what_is_in_it() -> None:
    pair, tokens = MIXED, list(range(64))
    name = contexts.state_name("sha", pair, tokens)
    assert name.startswith("q8_0-tq3_0-64-")
    others = {contexts.state_name("other", pair, tokens), contexts.state_name("sha", Pair.parse("q8_0"), tokens)}
    others.add(contexts.state_name("sha", pair, [*tokens[:-1], 1]))
    assert name not in others
    assert len(others) == 3
    assert contexts.name_of(Path("builds/p5")) == contexts.name_of(Path("builds/p5/bin")) == "p5"


def test_a_library_from_elsewhere_is_seen(tmp_path: Path) -> None:
    maps, folder = tmp_path / "maps", tmp_path / "p5"
    lines = [
        f"7f00-7f01 r-xp 0 00:00 1 {folder}/libllama.so",
        "7f00-7f01 r-xp 0 00:00 1 /lib/libc.so.6",
        "0-1 rw-p 0 0 0",
    ]
    maps.write_text("\n".join(lines))
    assert symbols.loaded_elsewhere(folder, maps) == []
    maps.write_text("\n".join([*lines, "7f00-7f01 r-xp 0 00:00 1 /other/bin/libggml-cpu.so"]))
    assert symbols.loaded_elsewhere(folder, maps) == [Path("/other/bin/libggml-cpu.so")]
    assert symbols.loaded_elsewhere(folder, tmp_path / "none") == []


def test_llama_bench_is_asked_and_read() -> None:
    argv = llama_bench.arguments(
        Path("llama-bench"), Path("m.gguf"), MIXED, (0, 2048), prefill=512, decode=16, threads=2, gpu=0
    )
    assert argv[0] == "llama-bench"
    text = " ".join(argv)
    assert "-ctk q8_0 -ctv tq3_0" in text
    assert "-d 0,2048" in text
    assert "-o json" in text
    assert "-pg 512,16" in text
    tests = [
        {"n_prompt": 512, "n_gen": 0, "n_depth": 2048, "samples_ns": [2_000_000_000]},
        {"n_prompt": 0, "n_gen": 16, "n_depth": 2048, "samples_ns": [1_000_000_000]},
        {"n_prompt": 512, "n_gen": 16, "n_depth": 2048, "samples_ns": [2_000_000_000]},
    ]
    prefill, decode, whole = llama_bench.samples(json.dumps(tests), MIXED, 3)
    assert (prefill.phase, prefill.rate, prefill.round) == ("prefill", 256.0, 3)
    assert (decode.phase, decode.rate, decode.depth) == ("decode", 16.0, 2048)
    assert (whole.phase, whole.rate) == ("end-to-end", 264.0)
    for wrong in ("no json", "[{}]", '[{"n_gen": 1, "n_prompt": 0, "n_depth": 0, "samples_ns": []}]'):
        with pytest.raises(LoadError, match="llama-bench printed"):
            llama_bench.samples(wrong, Q, 0)


def test_a_row_of_speed_keeps_its_share() -> None:
    band = Interval(value=1, low=1, high=1)
    row = SpeedRow(pair=Q, depth=1, phase="decode", rate=band, ratio_f16=None, rounds=1, depth_share=0.5)
    assert SpeedRow.model_validate_json(row.model_dump_json()) == row
