from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sessions import FACTS, session

from tqforge.adapters.llama.api.cache import CacheReport, CacheTensor
from tqforge.core import divergence, tq3_0
from tqforge.core.pair import F16, Pair
from tqforge.errors import CrashError, UsageError
from tqforge.report.judge import facts, statuses
from tqforge.report.schema.base import Check, StageStatus
from tqforge.report.schema.stages import CheckStage, Stage
from tqforge.verify import run, settings
from tqforge.verify.registry import BY_NAME
from tqforge.verify.session import Session, SkippedError, padded
from tqforge.verify.stages import codec as codec_stage
from tqforge.verify.stages import memory

SIZES = {"q8_0": (32, 34), "tq3_0": (32, 14)}


def cache_reply(tq3_bytes: int = 14) -> CacheReport:
    def tensor(name: str, kind: str, block: int) -> CacheTensor:
        return CacheTensor(name=name, type=kind, width=192, cells=256, bytes=192 * 256 // 32 * block, buffer="CPU")

    tensors = [tensor(f"cache_k_l{layer}", "q8_0", 34) for layer in range(2)]
    tensors += [tensor(f"cache_v_l{layer}", "tq3_0", tq3_bytes) for layer in range(2)]
    size = sum(one.bytes for one in tensors)
    return CacheReport(tensors=tuple(tensors), buffers=size, cells=256, rotation={}, saved_blocks=0, peak_rss=1)


def test_memory_is_equal_to_the_byte_or_failed() -> None:
    row = memory.row_of(Pair("q8_0", "tq3_0"), cache_reply(), SIZES, FACTS)
    assert row.v_measured == row.v_formula == 2 * 256 * 192 * 14 // 32
    assert (row.k_type, row.v_type, row.device) == ("q8_0", "tq3_0", "CPU")
    assert statuses.memory(memory.stage_of([row], None)).status is StageStatus.PASSED
    wrong = memory.row_of(Pair("q8_0", "tq3_0"), cache_reply(tq3_bytes=16), SIZES, FACTS)
    assert statuses.memory(memory.stage_of([row, wrong], None)).reasons == (facts.MemoryOff(wrong),)


def test_a_type_that_was_silently_not_applied_is_found() -> None:
    row = memory.row_of(Pair("tq3_0", "tq3_0"), cache_reply(), SIZES, FACTS)
    assert statuses.memory(memory.stage_of([row], None)).status is StageStatus.FAILED


def test_a_sliding_window_is_noted() -> None:
    assert "sliding window of 512 tokens" in memory.stage_of([], 512).notes[1]
    assert len(memory.stage_of([], None).notes) == 1


def test_divergence_of_known_distributions() -> None:
    half = np.log(np.array([0.5, 0.5], dtype=np.float32))
    skew = np.log(np.array([0.9, 0.1], dtype=np.float32))
    same = divergence.compare(skew, 0, skew)
    assert (same.kl, same.same_top) == (0.0, True)
    moved = divergence.compare(skew, 1, half)
    assert moved.kl == pytest.approx(0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1), rel=1e-5)
    assert moved.nll == pytest.approx(-np.log(0.1), rel=1e-5)
    assert divergence.compare(half, 0, None).kl is None


class _Native:
    """Our own codec in the place of the C one, with a fault on demand."""

    def __init__(self, spoil: Callable[[tq3_0.Packed], tq3_0.Packed] = lambda packed: packed) -> None:
        self._spoil = spoil

    def encode(self, _encoder: str, blocks: tq3_0.Floats) -> tq3_0.Packed:
        return self._spoil(tq3_0.encode(blocks))

    def decode(self, packed: tq3_0.Packed) -> tq3_0.Floats:
        return tq3_0.decode(packed)

    def roundtrip(self, blocks: tq3_0.Floats) -> tq3_0.Floats:
        return tq3_0.decode(self.encode("", blocks))


def test_the_codec_checks_pass_on_the_reference_and_find_one_wrong_bit() -> None:
    samples = codec_stage.special_blocks()
    good: Any = _Native()
    assert codec_stage.encoder_check(good, "e", samples).status is StageStatus.PASSED
    assert codec_stage.decoder_check(good, samples).status is StageStatus.PASSED
    normal = np.random.default_rng(5).standard_normal((20_000, 32)).astype(np.float32)
    assert [check.status for check in codec_stage.figures(good, normal)] == [StageStatus.PASSED] * 4

    def flip(packed: tq3_0.Packed) -> tq3_0.Packed:
        packed[-1, 5] ^= 1
        return packed

    bad: Any = _Native(flip)
    assert "1 of" in codec_stage.encoder_check(bad, "e", samples).observed


def test_an_earlier_generation_is_named() -> None:
    class Old(_Native):
        def encode(self, _encoder: str, blocks: tq3_0.Floats) -> tq3_0.Packed:
            return tq3_0.encode(blocks, tq3_0.RAW)

    old: Any = Old()
    assert "'raw' encoder" in codec_stage.encoder_check(old, "e", codec_stage.special_blocks()).observed


def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: Callable[[Session], Stage]) -> run.RunResult:
    passed = CheckStage(name="codec", checks=(Check(name="c", status=StageStatus.PASSED),))
    calls = {"source": action, "codec": lambda _: passed}
    table = {name: replace(BY_NAME[name], run=calls[name]) for name in calls}
    monkeypatch.setattr(run, "BY_NAME", table)
    return run.run_stages(session(tmp_path), lambda stages: None)


def test_a_crash_ends_its_stage_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: Session) -> Stage:
        raise CrashError("died of SIGSEGV", where="log")

    outcome = _run(tmp_path, monkeypatch, crash)
    assert [stage.status for stage in outcome.stages] == [StageStatus.ERROR, StageStatus.PASSED]
    failure = outcome.stages[0].error
    assert failure is not None
    assert (failure.kind, failure.code, failure.where) == ("CrashError", 23, "log")
    assert isinstance(outcome.error, CrashError)
    assert run.status_of(outcome.stages) is StageStatus.ERROR


def test_what_a_stage_had_is_kept_when_it_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(running_session: Session) -> Stage:
        running_session.partial(CheckStage(name="source", status=StageStatus.PASSED, notes=("half",)))
        raise KeyboardInterrupt

    outcome = _run(tmp_path, monkeypatch, half)
    assert outcome.interrupted
    assert [(stage.status, stage.notes) for stage in outcome.stages] == [(StageStatus.INCONCLUSIVE, ("half",))]


def test_a_skipped_stage_never_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def skip(_: Session) -> Stage:
        raise SkippedError("no template", "another model")

    outcome = _run(tmp_path, monkeypatch, skip)
    assert (outcome.stages[0].status, outcome.stages[0].reason) == (StageStatus.SKIPPED, "no template")
    assert run.status_of(outcome.stages[:1]) is StageStatus.SKIPPED
    assert run.status_of(outcome.stages) is StageStatus.PASSED


def test_the_report_holds_what_was_asked(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    stages: list[Stage] = [CheckStage(name="codec", status=StageStatus.PASSED)]
    made = run.report(session(tmp_path), stages, command=("tqforge", "verify"), started=datetime.now(UTC))
    assert made.pairs[0] == F16
    assert made.model is not None
    assert (made.asked, made.not_asked[:2]) == (("source", "codec"), ("ops", "placement"))
    assert type(made).model_validate(made.to_json()) == made


def test_options() -> None:
    assert settings.parse_pairs("f16, q8_0/tq3_0,f16") == (Pair("f16", "f16"), Pair("q8_0", "tq3_0"))
    assert settings.parse_lengths("2k,512") == (512, 2048)
    assert settings.parse_depths("10%,0.5") == (0.1, 0.5)
    free = replace(settings.QUICK, pairs=(F16,), threads=3, stages=("codec",), budgets=(1,), plan_context=5)
    assert settings.labelled(settings.QUICK, free) == free
    assert settings.labelled(settings.FULL, replace(settings.FULL, lengths=(512,))).profile == "custom"
    assert settings.labelled(settings.FULL, settings.FULL).profile == "full"
    assert padded(513) == 768


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (settings.parse_pairs, "a/b/c"),
        (settings.parse_pairs, ","),
        (settings.parse_lengths, "many"),
        (settings.parse_lengths, "-5"),
        (settings.parse_depths, "1.5"),
        (settings.parse_depths, "deep"),
    ],
)
def test_options_that_make_no_sense(call: Callable[[str], object], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        call(text)
    assert "--" in caught.value.remedy
