"""Made-up stages of the size of real ones, beside those of needles and memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from synthetic_parts import KL, PAIRS, STOCK, bits, digest, interval

from tqforge.report.schema.report import (
    Check,
    CheckStage,
    DeviceRow,
    DeviceStage,
    Interval,
    Need,
    OpsRow,
    OpsStage,
    PlanRow,
    PlanStage,
    QualityRow,
    QualityStage,
    SpeedRatio,
    SpeedRow,
    SpeedStage,
    Status,
)


def quality_row(pair: str, prefix: int = 1536, **more: Any) -> QualityRow:
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
        "rotation": "".join(side for side, kind in zip("KV", pair.split("/"), strict=True) if kind in STOCK) or "none",
    }
    return QualityRow(pair=pair, prefix=prefix, **{**values, **more})


def quality_stage(pairs: Iterable[str] = PAIRS, prefixes: Iterable[int] = (512, 1536)) -> QualityStage:
    rows = []
    for prefix in prefixes:
        noise = Interval(value=0.00021, low=0.00015, high=0.0003)
        rows.append(
            quality_row(
                "f16/f16",
                prefix,
                kl=noise,
                kl_p99=interval(0.001),
                kl_max=0.004,
                is_floor=True,
                top1=interval(0.992, 0.005),
            )
        )
        rows += [quality_row(pair, prefix) for pair in pairs if pair != "f16/f16"]
    return QualityStage(
        status=Status.PASSED, seconds=71.0, text="synthetic text", text_sha256=digest("text"), rows=tuple(rows)
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
    return OpsStage(status=Status.PASSED, seconds=31.0, rows=rows)


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
            bar=None if pair == "f16/f16" else 1.5e-3,
            kl_f16_device=None if pair == "f16/f16" else interval(0.2),
            kl_f16_cpu=None if pair == "f16/f16" else interval(0.21),
            parted=None if pair == "f16/f16" else 7,
            gap_cpu=0.02,
            gap_device=0.01,
            text=" of the water",
            splits=2,
            dispatches=21_000,
            attention=500,
            writes=840,
        )
        for pair, kl in (("f16/f16", 2e-5), ("tq3_0/tq3_0", 4e-4), ("q8_0/tq3_0", 9e-5))
    ]
    return DeviceStage(
        status=Status.PASSED, seconds=300.0, device="Metal emulator", model="synthetic, f16 weights", rows=tuple(rows),
        floor=2e-5, bar=1.04e-3, batches=(28, 8, 8), greedy=12,
    )  # fmt: skip


def check_stages() -> tuple[CheckStage, CheckStage, CheckStage]:
    source = CheckStage(
        name="source",
        status=Status.PASSED,
        checks=(
            Check(name="tree id in the binary", status=Status.PASSED, expected="aaaa1111", observed="aaaa1111"),
            Check(name="checkout is clean", status=Status.PASSED),
        ),
    )
    codec = CheckStage(
        name="codec",
        status=Status.PASSED,
        checks=(
            Check(name="random blocks, code for code", status=Status.PASSED, cases=20_000),
            Check(name="distortion on N(0,1)", status=Status.PASSED, expected="0.03455 within 1 %", observed="0.03458"),
        ),
    )
    placement = CheckStage(
        name="placement",
        status=Status.DEFERRED,
        reason="There is no Metal device on this machine.",
        remedy="Run it on a Mac.",
    )
    return source, codec, placement


def speed_stage(pairs: Iterable[str] = PAIRS) -> SpeedStage:
    rows = []
    rates: dict[Literal["prefill", "decode"], float] = {"prefill": 900.0, "decode": 61.0}
    for phase, base in rates.items():
        for depth in (0, 2048, 4096):
            for pair in pairs:
                ratio = (
                    1.0
                    if pair == "f16/f16"
                    else 0.4
                    if pair == "tq3_0/tq3_0" and depth == 4096
                    else 0.7 + bits(pair) / 50
                )
                rate = base * ratio / (1 + depth / 4000)
                share = None if pair == "f16/f16" else interval(ratio, 0.04)
                row = SpeedRow(
                    pair=pair, depth=depth, phase=phase, rate=interval(rate, 0.05), ratio_f16=share, rounds=5
                )
                near = {"neighbour": "q8_0/q8_0", "ratio_neighbour": interval(0.97, 0.02)} if "/tq" in pair else {}
                rows.append(row.model_copy(update={"depth_share": depth / 9000 if depth else None, **near}))
    ours = [row for row in rows if row.pair == "tq3_0/tq3_0"]
    slow = [row.model_copy(update={"rate": interval(row.rate.value / 15)}) for row in ours]
    return SpeedStage(
        status=Status.PASSED,
        seconds=140.0,
        threads=2,
        rows=tuple(rows),
        llama_bench=tuple(rows[:4]),
        beside=tuple(slow),
        beside_build="/builds/first",
        ratios=speed_ratios(),
    )


def speed_ratios() -> tuple[SpeedRatio, ...]:
    """An aim that is met, one that is missed, one that the spread leaves open, and one without an aim."""
    common: dict[str, Any] = {"pair": "tq3_0/tq3_0", "against": "q4_0/q4_0", "rounds": 5}
    return (
        SpeedRatio(phase="decode", depth=4096, ratio=interval(1.2, 0.02), bar=0.95, **common),
        SpeedRatio(phase="prefill", depth=4096, ratio=interval(0.7, 0.02), bar=0.85, **common),
        SpeedRatio(phase="prefill", depth=2048, ratio=interval(0.85, 0.02), bar=0.85, **common),
        SpeedRatio(phase="decode", depth=0, ratio=interval(15), **{**common, "against": "tq3_0/tq3_0 of first"}),
    )


def plan_stage(pairs: Iterable[str] = PAIRS) -> PlanStage:
    rows = []
    for n_ctx in (4096, 8192):
        for pair in pairs:
            values = 2 * 30 * 3 * 64 * n_ctx
            need = Need(weights=92 << 20, kv=int(values * bits(pair) / 8), compute=98 << 20)
            rows.append(PlanRow(pair=pair, n_ctx=n_ctx, planned=need, measured=need if n_ctx == 4096 else None))
    return PlanStage(status=Status.PASSED, seconds=3.0, n_ctx=8192, rows=tuple(rows), notes=("made up",))
