"""Reports made up for tests. No figure in here was measured."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

from tqforge.domain.report.schema import (
    BuildKeys,
    Check,
    CheckStage,
    DeviceRow,
    DeviceStage,
    Failure,
    Interval,
    Machine,
    MemoryRow,
    MemoryStage,
    ModelKeys,
    NearMiss,
    Need,
    NeedleCell,
    NeedleStage,
    NeedleSummary,
    OpsRow,
    OpsStage,
    Outcome,
    PlanRow,
    PlanStage,
    QualityRow,
    QualityStage,
    Report,
    RunSettings,
    SpeedRatio,
    SpeedRow,
    SpeedStage,
    Stage,
    Status,
)

BITS = {"f16": 16.0, "q8_0": 8.5, "q5_0": 5.5, "q4_0": 4.5, "tq3_0": 3.5}
PAIRS = ("f16/f16", "q8_0/q8_0", "q4_0/q4_0", "tq3_0/tq3_0", "q8_0/tq3_0")
STOCK = ("q8_0", "q5_0", "q4_0")
TWELVE = (*PAIRS, "q5_0/q5_0", "f16/tq3_0", "q4_0/tq3_0", "tq3_0/q8_0", "q8_0/q4_0", "f16/q8_0", "tq3_0/f16")
KL = {
    "q8_0/q8_0": (0.0044, 0.943),
    "q5_0/q5_0": (0.0123, 0.896),
    "q4_0/q4_0": (0.048, 0.852),
    "tq3_0/tq3_0": (0.28, 0.734),
    "q8_0/tq3_0": (0.025, 0.910),
}
HOSTILE = (
    "<script>alert('x')</script><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} {% raw %} </details></table>",
    "abc \u202e\u2066gnp.exe\u2069 \u05e9\u05dc\u05d5\u05dd \x1b[31mred\x1b[0m\x00\ud800 [bold]rich[/bold]",
    "long " + "x" * 30_000,
    "",
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def bits(pair: str) -> float:
    k, v = pair.split("/")
    return (BITS[k] + BITS[v]) / 2


def wilson(hits: int, n: int) -> Interval | None:
    if not n:
        return None
    z, p = 1.96, hits / n
    mid, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Interval(value=p, low=(mid - half) / (1 + z * z / n), high=(mid + half) / (1 + z * z / n))


def interval(value: float, spread: float = 0.12) -> Interval:
    return Interval(value=value, low=value * (1 - spread), high=min(value * (1 + spread), value + 0.03))


def cell(pair: str, length: int, depth: float, seed: int, outcome: Outcome, **more: Any) -> NeedleCell:
    score = {Outcome.HIT: 1.0, Outcome.PARTIAL: 0.5, Outcome.MISS: 0.0}.get(outcome)
    judged = score is not None
    near = (NearMiss(expected="VcMYB4", seen="VcMYB", distance=1),) if outcome is Outcome.MISS else ()
    values: dict[str, Any] = {
        "control": "f16" if pair == "f16/f16" else "none",
        "facts": ("FROSTBLOCK-7", "VcMYB4"),
        "fact_kind": "published" if seed == 1 else "random",
        "tokens": length - 3,
        "score": score,
        "exact": outcome is Outcome.HIT if judged else None,
        "found": ("FROSTBLOCK-7", "VcMYB4") if outcome is Outcome.HIT else (),
        "near_misses": near,
        "answer": "The locus is FROSTBLOCK-7 and the gene is VcMYB4."
        if outcome is Outcome.HIT
        else "The gene is VcMYB.",
        "prompt_sha256": digest(f"{length}-{depth}-{seed}"),
        "seconds": 1.7,
        "error": "SIGSEGV in llama_decode" if outcome is Outcome.ERROR else "",
    }
    return NeedleCell(pair=pair, length=length, depth=depth, seed=seed, outcome=outcome, **{**values, **more})


def grid(
    pairs: Iterable[str], lengths: Iterable[int], depths: Iterable[float], seeds: Iterable[int]
) -> list[NeedleCell]:
    """Deterministic outcomes: worse with fewer bits and with length; one column where the control fails."""
    cells = []
    for pair in pairs:
        for length in lengths:
            for depth in depths:
                for seed in seeds:
                    luck = int(digest(f"{pair}{length}{depth}{seed}")[:4], 16) / 0xFFFF
                    risk = min(0.9, length / 9000 * (16 - bits(pair)) / 12)
                    outcome = Outcome.HIT if luck > risk else Outcome.PARTIAL if luck > risk / 2 else Outcome.MISS
                    if length >= 4096 and depth == 0.5 and seed == 3:
                        outcome = Outcome.INCONCLUSIVE
                    cells.append(
                        cell(
                            pair,
                            length,
                            depth,
                            seed,
                            Outcome.HIT if pair == "f16/f16" and outcome != "inconclusive" else outcome,
                        )
                    )
    return cells


def summaries(cells: list[NeedleCell]) -> tuple[NeedleSummary, ...]:
    rows = []
    for pair in dict.fromkeys(cell.pair for cell in cells if cell.control != "no-needle"):
        mine = [cell for cell in cells if cell.pair == pair and cell.control != "no-needle"]
        for length in (None, *sorted({cell.length for cell in mine})):
            some = [cell for cell in mine if length in (None, cell.length)]
            number = {outcome: sum(cell.outcome is outcome for cell in some) for outcome in Outcome}
            n = number[Outcome.HIT] + number[Outcome.PARTIAL] + number[Outcome.MISS]
            rows.append(
                NeedleSummary(
                    pair=pair,
                    length=length,
                    n=n,
                    hits=number[Outcome.HIT],
                    partial=number[Outcome.PARTIAL],
                    misses=number[Outcome.MISS],
                    inconclusive=number[Outcome.INCONCLUSIVE],
                    errors=number[Outcome.ERROR],
                    mean_score=sum(cell.score or 0 for cell in some) / n if n else None,
                    rate=wilson(number[Outcome.HIT], n),
                )
            )
    return tuple(rows)


def needle_stage(pairs: Iterable[str] = PAIRS, lengths: Iterable[int] = (512, 2048, 4096), **more: Any) -> NeedleStage:
    lengths = tuple(lengths)
    cells = grid(pairs, lengths, (0.0, 0.5, 1.0), (1, 2, 3))
    cells += [
        cell("f16/f16", length, 0.9, 1, Outcome.MISS, control="no-needle", near_misses=(), answer="I do not know.")
        for length in lengths
    ]
    values: dict[str, Any] = {
        "status": Status.PASSED,
        "seconds": 96.2,
        "text": "synthetic hay",
        "text_sha256": digest("hay"),
        "template_sha256": digest("template"),
        "answer_tokens": 48,
        "lengths": lengths,
        "depths": (0.0, 0.5, 1.0),
        "prefix": "shared",
        "notes": ("8,192 tokens were left out: the model was trained for 4,096",),
        "cells": tuple(cells),
        "summaries": summaries(cells),
    }
    return NeedleStage(**{**values, **more})


def memory_row(pair: str, n_ctx: int = 4096, extra: int = 0) -> MemoryRow:
    k, v = pair.split("/")
    values = 30 * 3 * 64 * n_ctx
    due = (int(values * BITS[k] / 8), int(values * BITS[v] / 8))
    return MemoryRow(
        pair=pair,
        n_ctx=n_ctx,
        k_measured=due[0] + extra,
        v_measured=due[1],
        k_formula=due[0],
        v_formula=due[1],
        k_values=values,
        v_values=values,
        k_type=k,
        v_type=v,
        buffers=sum(due) + 4096,
        device="CPU",
        peak_rss=612_000_000,
    )


def memory_stage(pairs: Iterable[str] = PAIRS) -> MemoryStage:
    return MemoryStage(status=Status.PASSED, seconds=4.0, rows=tuple(memory_row(pair) for pair in pairs))


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
        status=Status.PASSED, seconds=300.0, device="Metal host", model="synthetic, f16 weights", rows=tuple(rows),
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
    for phase, base in (("prefill", 900.0), ("decode", 61.0)):
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


def stages(pairs: Iterable[str] = PAIRS) -> tuple[Stage, ...]:
    source, codec, placement = check_stages()
    return (
        source,
        codec,
        ops_stage(),
        placement,
        device_stage(),
        memory_stage(pairs),
        needle_stage(pairs),
        quality_stage(pairs),
    )


def report(**more: Any) -> Report:
    """A whole run in which tq3_0/tq3_0 loses some needles; every part can be replaced by keyword."""
    values: dict[str, Any] = {
        "tqforge": "0.1.0",
        "command": ("tqforge", "verify", "--quick", "--pairs", "tq3_0/tq3_0 and more"),
        "started": "2026-01-02T03:04:05Z",
        "seconds": 281.4,
        "status": Status.PASSED,
        "profile": "quick",
        "pairs": PAIRS,
        "seeds": (1, 2, 3),
        "machine": Machine(
            system="Linux", release="6.1", arch="x86_64", cpu="Synthetic CPU", cores=2, memory=24 << 30, python="3.11.2"
        ),
        "build": BuildKeys(
            base="upstream",
            commit="c" * 40,
            tree="a" * 40,
            series_sha256=digest("series"),
            preset="cpu",
            flags=("-DGGML_NATIVE=ON", "-DCMAKE_BUILD_TYPE=Release"),
            compiler="cc 12.2",
            stamp=digest("stamp"),
            version="0 (aaaaaaaa)",
        ),
        "model": ModelKeys(
            name="synthetic-135m",
            file="synthetic.gguf",
            sha256=digest("model"),
            size=101 << 20,
            arch="llama",
            layers=30,
            heads=9,
            kv_heads=3,
            head_k=64,
            head_v=64,
            trained_context=8192,
            vocabulary=49152,
        ),
        "settings": RunSettings(threads=2, n_batch=512, gpu_layers=0),
        "stages": stages(),
    }
    return Report(**{**values, **more})


def everything_deferred() -> Report:
    why = {"status": Status.DEFERRED, "reason": "The library could not be loaded.", "remedy": "Run tqforge build."}
    parts = (
        *(CheckStage(name=name, **why) for name in ("source", "codec", "placement")),
        OpsStage(**why),
        MemoryStage(**why),
    )
    return report(
        status=Status.DEFERRED, model=None, stages=(*parts, NeedleStage(**why), QualityStage(**why), SpeedStage(**why))
    )


def crash_in_the_middle() -> Report:
    cells = grid(("f16/f16", "tq3_0/tq3_0"), (512, 2048), (0.0, 1.0), (1, 2))[:11]
    cells += [cell("tq3_0/tq3_0", 2048, 0.0, 2, Outcome.ERROR), cell("tq3_0/tq3_0", 2048, 1.0, 1, Outcome.ERROR)]
    broken = NeedleStage(
        status=Status.ERROR,
        reason="The child ended by SIGSEGV while decoding",
        error=Failure(
            kind="CrashError", code=20, what="The child ended by SIGSEGV.", where="needle", remedy="Report it."
        ),
        lengths=(512, 2048, 4096),
        depths=(0.0, 1.0),
        cells=tuple(cells),
        summaries=summaries(cells),
    )
    return report(status=Status.ERROR, stages=(*check_stages()[:2], memory_stage(), broken))


def zero_cells() -> Report:
    return report(
        stages=(
            NeedleStage(status=Status.PASSED),
            MemoryStage(status=Status.PASSED),
            QualityStage(status=Status.PASSED),
        )
    )


def hostile() -> Report:
    cells = [
        cell("tq3_0/tq3_0", 512, 0.5, seed, Outcome.MISS, answer=text, facts=(text[:40] or "-",), error=text[:60])
        for seed, text in enumerate(HOSTILE)
    ]
    check = Check(name=HOSTILE[0], status=Status.FAILED, expected=HOSTILE[1], observed=HOSTILE[2], reason=HOSTILE[0])
    bad = CheckStage(name="codec", status=Status.FAILED, checks=(check,), reason=HOSTILE[2])
    needle = NeedleStage(status=Status.FAILED, cells=tuple(cells), reason=HOSTILE[0])
    return report(status=Status.FAILED, stages=(bad, needle), command=("tqforge", HOSTILE[0], HOSTILE[2]))


def not_numbers() -> Report:
    nan = float("nan")
    hole = Interval(value=nan, low=nan, high=nan)
    row = quality_row("tq3_0/tq3_0", kl=hole, top1=hole, perplexity=float("inf"), kl_max=nan, kl_p99=hole)
    zero = Interval(value=0.0, low=0.0, high=0.0)
    floor = quality_row("f16/f16", kl=zero, kl_p99=zero, kl_max=0, is_floor=True)
    needle = NeedleStage(
        status=Status.INCONCLUSIVE, cells=(cell("tq3_0/tq3_0", 512, 0.5, 1, Outcome.INCONCLUSIVE, seconds=nan),)
    )
    quality = QualityStage(status=Status.PASSED, rows=(floor, row, quality_row("q8_0/q8_0")))
    return report(
        stages=(needle, quality, MemoryStage(status=Status.PASSED, rows=(memory_row("tq3_0/tq3_0", extra=1024),)))
    )


def one_pair() -> Report:
    return report(pairs=("tq3_0/tq3_0",), stages=stages(("tq3_0/tq3_0",)))


def twelve_pairs() -> Report:
    return report(pairs=TWELVE, stages=(*stages(TWELVE), speed_stage(TWELVE)))


EDGES = {
    "usual": report,
    "everything deferred": everything_deferred,
    "crash in the middle": crash_in_the_middle,
    "zero cells": zero_cells,
    "hostile": hostile,
    "not numbers": not_numbers,
    "one pair": one_pair,
    "twelve pairs": twelve_pairs,
}
