"""Made-up stages of the size of real ones, beside those of needles and memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from synthetic_parts import F16, KL, MIXED, PAIRS, Q4_0, Q8_0, STOCK, TQ3_0, bits, digest, interval, pair_of

from tqforge.core.pair import Pair
from tqforge.report.schema.base import Check, Choice, Interval, PairLevel, StageStatus
from tqforge.report.schema.rows import (
    DeviceRow,
    MemoryNeed,
    OpsRow,
    PairVerdict,
    PlanRow,
    QualityRow,
    Recommendation,
    SpeedRatio,
    SpeedRow,
)
from tqforge.report.schema.stages import CheckStage, DeviceStage, OpsStage, PlanStage, QualityStage, SpeedStage


def quality_row(pair: Pair | str, prefix: int = 1536, **more: Any) -> QualityRow:
    pair = pair_of(pair)
    mean, top1 = KL.get(pair, (0.05 * (16 / bits(pair) - 1), 0.88))
    mean *= 1 + (1536 - prefix) / 4000
    values: dict[str, Any] = {
        "bits": bits(pair),
        "tokens": 256,
        "kl": interval(mean),
        "kl_p99": interval(mean * 6),
        "kl_max": mean * 21,
        "top1": interval(top1, 0.03),
        "perplexity": 14.2 * (1 + mean),
        "perplexity_reference": 14.2,
        "rotation": "".join(side for side, kind in zip("KV", (pair.k, pair.v), strict=True) if kind in STOCK) or "none",
    }
    return QualityRow(pair=pair, prefix=prefix, **{**values, **more})


def quality_stage(pairs: Iterable[Pair | str] = PAIRS, prefixes: Iterable[int] = (512, 1536)) -> QualityStage:
    rows = []
    for prefix in prefixes:
        noise = Interval(value=0.00021, low=0.00015, high=0.0003)
        rows.append(
            quality_row(
                F16,
                prefix,
                kl=noise,
                kl_p99=interval(0.001),
                kl_max=0.004,
                is_floor=True,
                top1=interval(0.992, 0.005),
            )
        )
        rows += [quality_row(pair, prefix) for pair in map(pair_of, pairs) if pair != F16]
    return QualityStage(
        status=StageStatus.PASSED, seconds=71.0, text="synthetic text", text_sha256=digest("text"), rows=tuple(rows)
    )


def ops_stage() -> OpsStage:
    rows = (
        OpsRow(backend="CPU", op="SET_ROWS", passed=96, failed=0, unsupported=0, worst_nmse=3.1e-5),
        OpsRow(
            backend="CPU",
            op="FLASH_ATTN_EXT",
            passed=412,
            failed=0,
            unsupported=24,
            worst_nmse=2.4e-4,
            note="f32 accumulation",
        ),
    )
    return OpsStage(status=StageStatus.PASSED, seconds=31.0, rows=rows)


def device_stage() -> DeviceStage:
    rows = [
        DeviceRow(
            pair=pair,
            tokens=55,
            kl=interval(kl),
            kl_max=5 * kl,
            top1=0.98,
            kl_cpu=interval(kl / 2),
            kl_same=interval(kl / 4),
            error_cpu=0.025,
            error_device=0.0252,
            limit=None if pair == F16 else 1.5e-3,
            kl_f16_device=None if pair == F16 else interval(0.2),
            kl_f16_cpu=None if pair == F16 else interval(0.21),
            parted=None if pair == F16 else 7,
            gap_cpu=0.02,
            gap_device=0.01,
            text=" of the water",
            splits=2,
            dispatches=21_000,
            attention=500,
            writes=840,
        )
        for pair, kl in ((F16, 2e-5), (TQ3_0, 4e-4), (MIXED, 9e-5))
    ]
    return DeviceStage(
        status=StageStatus.PASSED, seconds=300.0, device="Metal emulator", model="synthetic, f16 weights",
        rows=tuple(rows),
        floor=2e-5, limit=1.04e-3, batches=(28, 8, 8), greedy=12,
    )  # fmt: skip


def check_stages() -> tuple[CheckStage, CheckStage, CheckStage]:
    source = CheckStage(
        name="source",
        status=StageStatus.PASSED,
        checks=(
            Check(name="tree id in the binary", status=StageStatus.PASSED, expected="aaaa1111", observed="aaaa1111"),
            Check(name="checkout is clean", status=StageStatus.PASSED),
        ),
    )
    codec = CheckStage(
        name="codec",
        status=StageStatus.PASSED,
        checks=(
            Check(name="random blocks, code for code", status=StageStatus.PASSED, cases=20_000),
            Check(
                name="distortion on N(0,1)",
                status=StageStatus.PASSED,
                expected="0.03455 within 1 %",
                observed="0.03458",
            ),
        ),
    )
    placement = CheckStage(
        name="placement",
        status=StageStatus.SKIPPED,
        reason="There is no Metal device on this machine.",
        remedy="Run it on a Mac.",
    )
    return source, codec, placement


def speed_stage(pairs: Iterable[Pair | str] = PAIRS) -> SpeedStage:
    rows = []
    rates: dict[Literal["prefill", "decode"], float] = {"prefill": 900.0, "decode": 61.0}
    for phase, base in rates.items():
        for depth in (0, 2048, 4096):
            for pair in map(pair_of, pairs):
                ratio = 1.0 if pair == F16 else 0.4 if pair == TQ3_0 and depth == 4096 else 0.7 + bits(pair) / 50
                rate = base * ratio / (1 + depth / 4000)
                share = None if pair == F16 else interval(ratio, 0.04)
                row = SpeedRow(
                    pair=pair, depth=depth, phase=phase, rate=interval(rate, 0.05), ratio_f16=share, rounds=5
                )
                near = {"neighbour": Q8_0, "ratio_neighbour": interval(0.97, 0.02)} if pair.v == "tq3_0" else {}
                rows.append(row.model_copy(update={"depth_share": depth / 9000 if depth else None, **near}))
    ours = [row for row in rows if row.pair == TQ3_0]
    slow = [row.model_copy(update={"rate": interval(row.rate.value / 15)}) for row in ours]
    return SpeedStage(
        status=StageStatus.PASSED,
        seconds=140.0,
        threads=2,
        rows=tuple(rows),
        llama_bench=tuple(rows[:4]),
        compared=tuple(slow),
        compared_with="/builds/first",
        ratios=speed_ratios(),
    )


def speed_ratios() -> tuple[SpeedRatio, ...]:
    """An aim that is met, one that is missed, one that the spread leaves open, and one without an aim."""
    common: dict[str, Any] = {"pair": TQ3_0, "against": Q4_0, "rounds": 5}
    return (
        SpeedRatio(phase="decode", depth=4096, ratio=interval(1.2, 0.02), target=0.95, **common),
        SpeedRatio(phase="prefill", depth=4096, ratio=interval(0.7, 0.02), target=0.85, **common),
        SpeedRatio(phase="prefill", depth=2048, ratio=interval(0.85, 0.02), target=0.85, **common),
        SpeedRatio(phase="decode", depth=0, ratio=interval(15), **{**common, "against": TQ3_0, "build": "first"}),
    )


def plan_stage(pairs: Iterable[Pair | str] = PAIRS) -> PlanStage:
    rows = []
    for n_ctx in (4096, 8192):
        for pair in map(pair_of, pairs):
            values = 2 * 30 * 3 * 64 * n_ctx
            need = MemoryNeed(weights=92 << 20, kv=int(values * bits(pair) / 8), compute=98 << 20)
            rows.append(PlanRow(pair=pair, n_ctx=n_ctx, planned=need, measured=need if n_ctx == 4096 else None))
    return PlanStage(status=StageStatus.PASSED, seconds=3.0, n_ctx=8192, rows=tuple(rows), notes=("made up",))


def recommendation(budget: int, pair: Pair | None, **more: Any) -> Recommendation:
    """The choice for a budget: half of it is needed."""
    outcome = Choice.TOO_SMALL if pair is None else Choice.REFERENCE if pair == F16 else Choice.FITS
    verdict = None if pair is None else PairVerdict(pair=pair, bits=6.0, level=PairLevel.SAFE, kl=interval(0.02))
    smallest = Pair.both("q8_0") if pair is None else None
    values: dict[str, Any] = {
        "usable": budget * 3 // 4,
        "n_ctx": 8192,
        "need": budget // 2 if pair else None,
        "verdict": verdict,
        "smallest": smallest,
        "smallest_need": budget if smallest else None,
    }
    return Recommendation(budget=budget, pair=pair, outcome=outcome, **{**values, **more})
