"""Every fact has a sentence, in every state that changes its words."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import pytest
from synthetic_parts import F16, MIXED, Q4_0, Q8_0, TQ3_0, interval, memory_row
from synthetic_stages import device_stage, quality_row, speed_ratios

from tqforge.report.judge import facts
from tqforge.report.judge import reasons as rules
from tqforge.report.judge.facts import Beside, Fact
from tqforge.report.judge.findings import Kind, Overall
from tqforge.report.judge.needles import Tally
from tqforge.report.judge.reasons import DeviceFault, DeviceProblem, Missing
from tqforge.report.render.sentences import facts as words
from tqforge.report.render.sentences import pairs, run
from tqforge.report.render.sentences.reasons import reasons, sentence
from tqforge.report.schema.base import Check, Choice, ErrorRecord, Interval, PairLevel, StageStatus
from tqforge.report.schema.rows import MemoryNeed, NeedleSummary, OpsRow, PairVerdict, PlanRow, Recommendation, SpeedRow
from tqforge.report.schema.stages import CheckStage, Stage


def check(status: StageStatus, **more: Any) -> Check:
    return Check(name="tree id", status=status, **more)


def stage(status: StageStatus, **more: Any) -> Stage:
    return CheckStage(name="codec", status=status, **more)


SIZE, ALONE = facts.CacheSize(TQ3_0, 3.5, 16 / 3.5), facts.CacheSize(TQ3_0, 3.5, None)
OPS = OpsRow(backend="CPU", op="CPY", passed=5, failed=2, unsupported=1)
SUMMARY = NeedleSummary(
    pair=TQ3_0, length=None, n=9, hits=2, partial=0, misses=7, inconclusive=0, errors=0, mean_score=0.2, rate=None
)
DEVICE = device_stage().rows[0].model_copy(update={"pair": TQ3_0, "dispatches": None})
BROKEN = quality_row(TQ3_0, kl=interval(2.1), top1=interval(0.3))
SPEED = SpeedRow(pair=TQ3_0, depth=64, phase="decode", rate=interval(9), ratio_f16=interval(0.4), rounds=3)
NEED = MemoryNeed(weights=1, kv=2, compute=3)
VERDICT = PairVerdict(pair=MIXED, bits=6, level=PairLevel.SAFE, kl=interval(0.025), hits=9, needles=9)
UNSAFE = VERDICT.model_copy(update={"pair": Q4_0, "level": PairLevel.UNSAFE, "needles": 0})
CHOICE = Recommendation(
    budget=16 << 30, usable=12 << 30, n_ctx=8192, outcome=Choice.FITS, pair=MIXED, need=3 << 30, verdict=VERDICT
)
SENTENCES: list[tuple[Fact, str]] = [
    (facts.ChecksPassed(2, 3, 0), "2 of 3 checks passed."),
    (facts.ChecksPassed(1, 1, 20_000), "1 of 1 check passed (20,000 cases)."),
    (facts.CheckOpen(check(StageStatus.FAILED)), "tree id failed."),
    (
        facts.CheckOpen(check(StageStatus.ERROR, expected="a", observed="b", reason="why")),
        "tree id ended in an error. Expected a, got b. why.",
    ),
    (facts.CheckOpen(check(StageStatus.SKIPPED, reason="no clang")), "tree id: no clang."),
    (facts.CheckOpen(check(StageStatus.SKIPPED)), "tree id: No reason was recorded."),
    (facts.CheckOpen(check(StageStatus.INCONCLUSIVE)), "tree id is inconclusive. No reason was recorded."),
    (facts.OpsCounted("CPU", 0, 0, 1, ()), "CPU: no case ran. 1 case not supported."),
    (facts.OpsCounted("CPU", 1, 0, 0, ()), "CPU: its only case agrees with the reference."),
    (facts.OpsCounted("CPU", 1200, 0, 0, ()), "CPU: all 1,200 cases agree with the reference."),
    (facts.OpsCounted("CPU", 5, 2, 0, ("CPY", "SET")), "CPU: 2 cases of 7 failed (CPY and SET)."),
    (
        facts.DeviceCompared(DEVICE.model_copy(update={"kl_same": None, "kl_cpu": None}), "Metal", None),
        "tq3_0/tq3_0: KL(CPU || Metal) 0.000020 (0.000018 to 0.000022); the greedy texts are the same.",
    ),
    (facts.MemoryOff(memory_row(TQ3_0, extra=-2)), "tq3_0/tq3_0 at 4,096 tokens: the K buffer has 2 bytes less than"),
    (
        facts.MemoryOff(memory_row(TQ3_0).model_copy(update={"k_values": 0})),
        "tq3_0/tq3_0 at 4,096 tokens: no values were measured.",
    ),
    (
        facts.BytesPerValue(SIZE, 14, 32),
        (
            "tq3_0/tq3_0: K and V buffers are exactly 14/32 bytes per value "
            "(3.5 bits, 4.57 times smaller than f16 in this run)."
        ),
    ),
    (facts.BytesPerValue(ALONE, 15, 64), "K and V buffers are exactly 0.2344 bytes per value (3.5 bits)."),
    (facts.BytesPerValue(ALONE, 15, 0), "exactly 0/32 bytes per value"),
    (facts.SizesExact((SIZE, ALONE)), "Exactly the expected size: tq3_0/tq3_0 (3.5 bits, 4.57 times"),
    (facts.OtherSizesExact(1), "1 further row (other pairs and lengths) exactly of the expected size."),
    (
        facts.NeedlesFound(TQ3_0, Tally(2, 1, 0, 1, 1, 0.8), interval(0.5)),
        (
            "tq3_0/tq3_0 found 2 of 3 needles (67%, 95% interval 44 to 53%); "
            "1 partly found, 1 inconclusive because f16 itself missed and 1 error."
        ),
    ),
    (facts.NeedlesFound(TQ3_0, Tally(errors=2), None), "none of 2 needles could be judged; 2 errors."),
    (facts.StockNeedles(((Q8_0, Tally(9)), (Q4_0, Tally(8, 0, 1)))), "q8_0/q8_0 9 of 9 and q4_0/q4_0 8 of 9."),
    (facts.ReferenceNeedles(F16, Tally(9)), "f16/f16 (the control) found 9 of 9 needles."),
    (facts.ReferenceNeedles(F16, Tally(8, 0, 1)), "8 of 9 needles; the other pairs are judged on these only."),
    (facts.ReferenceNeedles(F16, Tally(0, 0, 1)), "0 of 1 needle: the other pairs cannot be judged where it failed."),
    (facts.NoNeedle(F16, Tally(misses=3)), "Without a needle, f16/f16 found nothing in 3 tries"),
    (facts.NoNeedle(F16, Tally(partial=1, misses=2)), "still found 1 of 3: the questions can be guessed."),
    (facts.Distance(quality_row(TQ3_0, kl=interval(float("nan")))), "tq3_0/tq3_0: the KL divergence is not a number."),
    (
        facts.Distance(quality_row(TQ3_0, top1=interval(float("nan")))),
        "tq3_0/tq3_0 is clearly different from f16: KL 0.280 (0.246 to 0.310).",
    ),
    (
        facts.Distance(quality_row(TQ3_0, kl=interval(0.4)), quality_row(Q4_0, kl=interval(0.1)), Beside.HIGHER),
        "of the time; that is 4.0 times the KL of q4_0/q4_0 at 4.5 bits (KL 0.100).",
    ),
    (facts.Distance(quality_row(TQ3_0), quality_row(Q4_0), Beside.LOWER), "that is closer than q4_0/q4_0 at 4.5 bits"),
    (facts.Distance(quality_row(TQ3_0), quality_row(Q4_0), Beside.SAME), "that is not distinguishable from q4_0/q4_0"),
    (
        facts.BetterKeys(quality_row(MIXED, kl=interval(0.02)), quality_row(TQ3_0, kl=interval(0.2))),
        "Keys need more bits than values here: q8_0/tq3_0 (6 bits) has a KL 10 times lower than tq3_0/tq3_0 (3.5 bits)",
    ),
    (facts.BetterKeys(quality_row(MIXED, kl=interval(0)), quality_row(TQ3_0)), "has a KL far below tq3_0/tq3_0"),
    (
        facts.Slow(TQ3_0, F16, 0.3, 0.4, (("decode", 0), ("decode", 2048), ("prefill", 0))),
        "tq3_0/tq3_0: 30 to 40% of the rate of f16 in decode at depth 0 and 2,048, prefill at depth 0. A fallback is",
    ),
    (facts.Slow(TQ3_0, Q4_0, 0.3, 0.3, (("decode", 0),)), "30% of the rate of q4_0/q4_0 in decode at depth 0."),
    (
        facts.RateShares(TQ3_0, (("prefill", 0.8, 0.9), ("decode", 0.7, 0.7))),
        "tq3_0/tq3_0 runs at 80 to 90% in prefill and 70% in decode of the rate of f16 in the same run.",
    ),
    (
        facts.TargetChecked(speed_ratios()[0].model_copy(update={"build": "old"}), noisy=True),
        ("1.20 times (1.18 to 1.22) the rate of q4_0/q4_0 of old, on a busy machine; target 0.95, 5 rounds: met."),
    ),
    (facts.PairLevels((VERDICT, UNSAFE), 512), "On this model, up to 512 tokens, safe: q8_0/tq3_0; unsafe: q4_0/q4_0."),
    (facts.Recommended(CHOICE), "16 GiB of memory, 8,192 tokens: q8_0/tq3_0 (needs 3.0 GiB). Safe on this model: KL"),
    (facts.NotReached(("quality", "speed")), "The run ended before quality and speed."),
    (facts.NotAsked(("ops",)), "Not part of this run: ops."),
    (facts.StageEnded(stage(StageStatus.PASSED), 0), "without any observation, which proves nothing."),
    (facts.StageEnded(stage(StageStatus.INCONCLUSIVE), 3), "Inconclusive. No reason was recorded."),
    (facts.StageEnded(stage(StageStatus.INCONCLUSIVE, reason="too short"), 3), "Inconclusive. Too short."),
    (facts.StageEnded(stage(StageStatus.SKIPPED, reason="no model", remedy="Name one"), 0), "No model. Name one."),
    (facts.StageEnded(stage(StageStatus.FAILED), 0), "No reason was recorded."),
    (
        facts.StageEnded(stage(StageStatus.ERROR, error=ErrorRecord(kind="x", code=1, what="died", where="log")), 2),
        "Ended in an error after 2 observations. Died. Where: log.",
    ),
    (rules.NothingMeasured(), "Nothing was measured."),
    (
        rules.ChecksFailed((check(StageStatus.FAILED, observed="b"), check(StageStatus.SKIPPED, reason="why"))),
        "tree id: b; tree id: why.",
    ),
    (rules.OpsFailed((OPS,)), "CPU, CPY: 5 passed, 2 failed, 1 not supported."),
    (rules.OpsFailed((OPS.model_copy(update={"note": "SIGSEGV"}),) * 5), "CPU, CPY: SIGSEGV; and 2 more."),
    (rules.NoDevice("no clang"), "No Metal kernel ran: no clang; the CPU part is recorded."),
    (rules.DeviceOpen(Missing.FLOOR), "f16/f16 was not measured, so nothing can be compared with it."),
    (rules.DeviceOpen(Missing.PAIRS), "No pair was measured besides f16/f16."),
    (rules.DeviceOpen(Missing.SAME_ROWS, (TQ3_0, MIXED)), "Not compared on the same rows: tq3_0/tq3_0, q8_0/tq3_0."),
    (rules.NeedlesGuessed(1), "Without a needle 1 answer held a fact."),
    (rules.NeedleErrors((TQ3_0, MIXED)), "Errors with tq3_0/tq3_0, q8_0/tq3_0."),
    (rules.NeedlesLost(SUMMARY), "tq3_0/tq3_0 finds 2 of 9 needles that f16 finds."),
    (rules.ReferenceFindsNothing(), "f16 itself answers none of the questions: choose shorter lengths or another"),
    (rules.ModelBroken((BROKEN,)), "Breaks this model: tq3_0/tq3_0 (KL 2.10, top-1 30%)."),
    (rules.FallbackSuspected((SPEED,), noisy=False), "a fallback is suspected: tq3_0/tq3_0 (decode at 64)."),
    (rules.FallbackSuspected((SPEED,), noisy=True), "a fallback is suspected, but the machine was busy: tq3_0"),
    (rules.PlanOff(PlanRow(pair=F16, n_ctx=9, planned=NEED), 4096), "f16/f16 at 9 tokens: the planned cache is off by"),
]
FAULTS = {
    DeviceFault.REPORTED: "here",
    DeviceFault.CPU_STRAYED: "the CPU's own run had here",
    DeviceFault.IDLE: "no kernel of cache writes or attention was dispatched",
    DeviceFault.STRAYED: "left the device: here",
    DeviceFault.READS: "KL(CPU || device) 0.3 on the same rows is above 0.2",
    DeviceFault.WRITES: "error of the here rows it wrote is 0.3, of the CPU's 0.2",
    DeviceFault.FAR_FROM_F16: "KL from f16 is 0.3 on the device, 0.2 on the CPU",
}


@pytest.mark.parametrize(("fact", "text"), SENTENCES, ids=lambda value: type(value).__name__)
def test_the_sentence_of_a_fact(fact: Fact, text: str) -> None:
    said = sentence(fact)
    assert text in said
    assert said.endswith(".")
    assert "  " not in said


@pytest.mark.parametrize("fault", DeviceFault)
def test_every_fault_of_a_device_is_named(fault: DeviceFault) -> None:
    fact = rules.DeviceFailed(TQ3_0, (DeviceProblem(fault, "here", 0.3, 0.2),))
    assert sentence(fact) == f"tq3_0/tq3_0: {FAULTS[fault]}."


def test_every_fact_is_a_value_with_a_sentence_and_a_test() -> None:
    kinds = set(Fact.__subclasses__())
    assert kinds == set(words.say.registry) - {object}
    assert kinds == {type(fact) for fact, _ in SENTENCES} | {rules.DeviceFailed}
    assert all(is_dataclass(kind) for kind in kinds)
    assert all(getattr(kind, "__dataclass_params__").frozen for kind in kinds)  # noqa: B009 - no part of the type
    with pytest.raises(TypeError, match="no sentence for Fact"):
        sentence(Fact())


def test_every_state_has_words() -> None:
    assert set(run.KIND_TITLE) == set(Kind)
    assert set(run._WORD) == set(Overall)
    assert set(pairs.LEVEL_SIGN) == set(PairLevel)


def test_reasons_are_sentences() -> None:
    assert reasons(()) == ""
    assert reasons((rules.NothingMeasured(), rules.NeedlesGuessed(2))) == (
        "Nothing was measured. Without a needle 2 answers held a fact."
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"outcome": Choice.NOT_MEASURED}, "no recommendation without measured quality: run the stages quality and"),
        ({"outcome": Choice.REFERENCE}, "f16 itself fits"),
        (
            {"outcome": Choice.TOO_SMALL, "smallest": MIXED, "smallest_need": 3 << 30},
            "the smallest safe pair, q8_0/tq3_0, needs 3.0 GiB; none fits",
        ),
        (
            {"outcome": Choice.TOO_SMALL, "smallest": MIXED, "smallest_need": 3 << 30, "unsafe": (UNSAFE,)},
            "needs 3.0 GiB; what fits is not safe here: q4_0/q4_0 (unsafe)",
        ),
        ({}, "safe on this model: KL 0.025 (0.022 to 0.028), 9 of 9 needles"),
        ({"verdict": VERDICT.model_copy(update={"needles": 0})}, "rated by KL alone, without needles"),
        (
            {"closer": (F16, Q8_0), "closer_need": 13 << 30},
            "closer to f16, but f16/f16 and q8_0/q8_0 would need 13.0 GiB or more; 12.0 GiB is usable",
        ),
        ({"unsafe": (UNSAFE,)}, "smaller, but not safe here: q4_0/q4_0 (unsafe)"),
    ],
)
def test_the_reason_of_a_recommendation(changes: dict[str, Any], text: str) -> None:
    assert text in pairs.reason(CHOICE.model_copy(update=changes))


def test_a_budget_that_nothing_fits() -> None:
    changes = {"outcome": Choice.TOO_SMALL, "pair": None, "smallest": MIXED, "smallest_need": 3 << 30}
    text = pairs.recommendation(CHOICE.model_copy(update=changes))
    assert text == (
        "16 GiB of memory, 8,192 tokens: no safe pair fits. "
        "The smallest safe pair, q8_0/tq3_0, needs 3.0 GiB; none fits."
    )


@pytest.mark.parametrize(
    ("spread", "share", "parts"),
    [
        (None, None, []),
        (0.10, 0.90, []),
        (0.11, None, ["repeated rates differ by 11% from their median"]),
        (None, 0.89, ["this run had 89% of the CPUs it asked for"]),
        (0.5, 0.5, ["differ by 50%", "had 50% of"]),
    ],
)
def test_why_a_machine_was_not_quiet(spread: float | None, share: float | None, parts: list[str]) -> None:
    text = words.noise(spread, share)
    assert bool(text) == bool(parts)
    assert all(part in text for part in parts)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0099, "indistinguishable from f16"),
        (0.01, "close to f16"),
        (0.0499, "close to f16"),
        (0.05, "clearly different from f16"),
        (0.4999, "clearly different from f16"),
        (0.5, "so far from f16 that the model is unusable"),
    ],
)
def test_the_band_of_a_distance(value: float, text: str) -> None:
    assert pairs.band(Interval(value=value, low=value, high=value)) == text
