"""Rates, ratios and noise as pure functions; the stage on a child that answers from a table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_stages import FACTS, KEYS

from tqforge.adapters.console import Output
from tqforge.domain.model import Pair
from tqforge.domain.report.schema import Interval, SpeedRow, Status
from tqforge.domain.verify import llamabench, rates, settings
from tqforge.domain.verify.rates import Sample
from tqforge.domain.verify.session import DeferredError, Session, Target
from tqforge.domain.verify.stages import speed
from tqforge.errors import LoadError, UsageError

CHOSEN = replace(
    settings.QUICK, pairs=(Pair.parse("tq3_0"),), speed_depths=(0, 64), speed_prefill=32, speed_decode=4, threads=2
)


def sample(pair: str, seconds: float, *, number: int = 0, depth: int = 0) -> Sample:
    return Sample(pair, depth, "decode", number, 10, seconds, cpu=2 * seconds)


def test_a_ratio_is_taken_within_a_round() -> None:
    own = [sample("q", 2.0, number=0), sample("q", 20.0, number=1), sample("q", 200.0, number=2)]
    control = [sample("f16/f16", 1.0, number=0), sample("f16/f16", 10.0, number=1), sample("f16/f16", 100.0, number=2)]
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
    rows = rates.rows_of([sample("f16/f16", 1.0), sample("q4_0/q4_0", 2.1), sample("tq3_0/tq3_0", 1.9)])
    assert [bool(row.note) for row in rows] == [False, True, False]
    assert speed.verdict(rows) == (Status.PASSED, "")
    slow = rates.rows_of([sample("f16/f16", 1.0), sample("tq3_0/tq3_0", 2.5)])
    status, reason = speed.verdict(slow)
    assert status is Status.FAILED
    assert "tq3_0/tq3_0 (decode at 0)" in reason
    assert speed.verdict([])[0] is Status.INCONCLUSIVE


def test_the_share_that_grows_with_depth() -> None:
    deep, empty = rates.rows_of([sample("q", 4.0, depth=4096), sample("q", 1.0)])
    assert deep.depth_share == pytest.approx(0.75)
    assert empty.depth_share is None


def test_a_noisy_machine_is_recognised() -> None:
    quiet = [sample("q", 1.0 + number / 100, number=number) for number in range(5)]
    assert not rates.noise(rates.spread(quiet), rates.cpu_share(quiet, 2))
    loud = [sample("q", 1.0 + number, number=number) for number in range(5)]
    assert "differ by" in rates.noise(rates.spread(loud), 1.0)
    assert "had 50% of the CPUs" in rates.noise(0.01, rates.cpu_share(quiet, 4))
    assert rates.spread([sample("q", 1.0)]) is None
    assert rates.cpu_share([], 2) is None


def test_every_pair_is_filled_before_a_depth_is_measured_in_turns() -> None:
    steps = speed.plan((0, 64), 2, CHOSEN)
    fills = [place for place, step in enumerate(steps) if step.phase == "end-to-end"]
    assert [(steps[place].index, steps[place].depth, steps[place].count) for place in fills] == [(0, 0, 64), (1, 0, 64)]
    assert all(step.depth == 0 for step in steps[: fills[0]])
    assert all(step.depth == 64 for step in steps[fills[-1] + 1 :])
    first = [step.index for step in steps if (step.phase, step.depth, step.round) == ("decode", 0, 0)]
    second = [step.index for step in steps if (step.phase, step.depth, step.round) == ("decode", 0, 1)]
    assert (first, second) == ([0, 1], [1, 0])


def test_depths_that_do_not_fit_are_left_out() -> None:
    assert speed.usable_depths(settings.FULL, 4096) == (0, 2048)
    with pytest.raises(DeferredError, match="fits into"):
        speed.usable_depths(settings.FULL, 100)
    assert settings.parse_fills("4k,0,2048") == (0, 2048, 4096)
    with pytest.raises(UsageError):
        settings.parse_fills("deep")


class FakeChild:
    """Answers as a worker does; the second pair is three times slower."""

    alive = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def call(self, op: str, args: dict[str, Any], **_more: object) -> dict[str, Any]:
        self.calls.append((op, args))
        if op == "tokenize":
            return {"tokens": [[5, 6, 7]]}
        if op == "bench_open":
            return {"cpus": [0, 1]}
        if op == "bench_run":
            seconds = len(args["tokens"]) * (0.03 if args["index"] else 0.01)
            return {"seconds": seconds, "cpu": 2 * seconds}
        return {}


def test_the_stage_measures_and_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(library=tmp_path, bindings=tmp_path, keys=KEYS, gpu=False)
    session = Session(out=Output(quiet=True), target=target, settings=CHOSEN, facts=FACTS, folder=tmp_path)
    child = FakeChild()
    monkeypatch.setattr(Session, "model", lambda *_: child)
    stage = speed.run(session)
    assert child.calls[-1][0] == "bench_close"
    assert stage.status is Status.FAILED
    assert {row.phase for row in stage.rows} == {"prefill", "decode", "end-to-end"}
    wanted = ("tq3_0/tq3_0", "decode", 64)
    ratio = next(row.ratio_f16 for row in stage.rows if (row.pair, row.phase, row.depth) == wanted)
    assert ratio is not None
    assert ratio.value == pytest.approx(1 / 3)
    assert stage.busy == pytest.approx(1.0)
    assert stage.spread == pytest.approx(0.0)
    assert any("llama-bench was not asked for" in note for note in stage.notes)
    runs = [args for op, args in child.calls if op == "bench_run"]
    assert all(len(args["tokens"]) for args in runs)
    assert {args["keep"] for args in runs} == {0, 64}


def test_llama_bench_is_asked_and_read() -> None:
    argv = llamabench.arguments(
        Path("llama-bench"), Path("m.gguf"), Pair("q8_0", "tq3_0"), (0, 2048), prefill=512, decode=16, threads=2, gpu=0
    )
    text = " ".join(argv)
    assert "-ctk q8_0 -ctv tq3_0" in text
    assert "-d 0,2048" in text
    assert "-o json" in text
    tests = [
        {"n_prompt": 512, "n_gen": 0, "n_depth": 2048, "samples_ns": [2_000_000_000]},
        {"n_prompt": 0, "n_gen": 16, "n_depth": 2048, "samples_ns": [1_000_000_000]},
    ]
    prefill, decode = llamabench.samples(json.dumps(tests), "q8_0/tq3_0", 3)
    assert (prefill.phase, prefill.rate, prefill.round) == ("prefill", 256.0, 3)
    assert (decode.phase, decode.rate, decode.depth) == ("decode", 16.0, 2048)
    for wrong in ("no json", "[{}]", '[{"n_gen": 1, "n_prompt": 0, "n_depth": 0, "samples_ns": []}]'):
        with pytest.raises(LoadError, match="llama-bench printed"):
            llamabench.samples(wrong, "q/q", 0)


def test_a_row_of_speed_keeps_its_share() -> None:
    band = Interval(value=1, low=1, high=1)
    row = SpeedRow(pair="q/q", depth=1, phase="decode", rate=band, ratio_f16=None, rounds=1, depth_share=0.5)
    assert SpeedRow.model_validate_json(row.model_dump_json()) == row
