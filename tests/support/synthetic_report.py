"""Reports made up for tests. No figure in here was measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from synthetic_parts import (
    F16,
    PAIRS,
    Q8_0,
    TQ3_0,
    TWELVE,
    cell,
    digest,
    grid,
    memory_row,
    memory_stage,
    needle_stage,
    summaries,
)
from synthetic_stages import (
    check_stages,
    device_stage,
    ops_stage,
    quality_row,
    quality_stage,
    speed_stage,
)

from tqforge.core.pair import Pair
from tqforge.report.schema.base import CellOutcome, Check, ErrorRecord, Interval, StageStatus
from tqforge.report.schema.provenance import BuildProvenance, Machine, ModelProvenance, RunSettings
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import CheckStage, MemoryStage, NeedleStage, OpsStage, QualityStage, SpeedStage, Stage

HOSTILE = (
    "<script>alert('x')</script><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} {% raw %} </details></table>",
    "abc \u202e\u2066gnp.exe\u2069 \u05e9\u05dc\u05d5\u05dd \x1b[31mred\x1b[0m\x00\ud800 [bold]rich[/bold]",
    "long " + "x" * 30_000,
    "",
)


def stages(pairs: Iterable[Pair | str] = PAIRS) -> tuple[Stage, ...]:
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
        "status": StageStatus.PASSED,
        "profile": "quick",
        "pairs": PAIRS,
        "seeds": (1, 2, 3),
        "machine": Machine(
            system="Linux", release="6.1", arch="x86_64", cpu="Synthetic CPU", cores=2, memory=24 << 30, python="3.11.2"
        ),
        "build": BuildProvenance(
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
        "model": ModelProvenance(
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
    why: dict[str, Any]
    why = {"status": StageStatus.SKIPPED, "reason": "The library could not be loaded.", "remedy": "Run tqforge build."}
    parts = (
        *(CheckStage(name=name, **why) for name in ("source", "codec", "placement")),
        OpsStage(**why),
        MemoryStage(**why),
    )
    return report(
        status=StageStatus.SKIPPED,
        model=None,
        stages=(*parts, NeedleStage(**why), QualityStage(**why), SpeedStage(**why)),
    )


def crash_in_the_middle() -> Report:
    cells = grid((F16, TQ3_0), (512, 2048), (0.0, 1.0), (1, 2))[:11]
    cells += [cell(TQ3_0, 2048, 0.0, 2, CellOutcome.ERROR), cell(TQ3_0, 2048, 1.0, 1, CellOutcome.ERROR)]
    broken = NeedleStage(
        status=StageStatus.ERROR,
        reason="The child ended by SIGSEGV while decoding",
        error=ErrorRecord(
            kind="CrashError", code=20, what="The child ended by SIGSEGV.", where="needle", remedy="Report it."
        ),
        lengths=(512, 2048, 4096),
        depths=(0.0, 1.0),
        cells=tuple(cells),
        summaries=summaries(cells),
    )
    return report(status=StageStatus.ERROR, stages=(*check_stages()[:2], memory_stage(), broken))


def zero_cells() -> Report:
    return report(
        stages=(
            NeedleStage(status=StageStatus.PASSED),
            MemoryStage(status=StageStatus.PASSED),
            QualityStage(status=StageStatus.PASSED),
        )
    )


def hostile() -> Report:
    cells = [
        cell(TQ3_0, 512, 0.5, seed, CellOutcome.MISS, answer=text, facts=(text[:40] or "-",), error=text[:60])
        for seed, text in enumerate(HOSTILE)
    ]
    check = Check(
        name=HOSTILE[0], status=StageStatus.FAILED, expected=HOSTILE[1], observed=HOSTILE[2], reason=HOSTILE[0]
    )
    bad = CheckStage(name="codec", status=StageStatus.FAILED, checks=(check,), reason=HOSTILE[2])
    needle = NeedleStage(status=StageStatus.FAILED, cells=tuple(cells), reason=HOSTILE[0])
    return report(status=StageStatus.FAILED, stages=(bad, needle), command=("tqforge", HOSTILE[0], HOSTILE[2]))


def not_numbers() -> Report:
    nan = float("nan")
    hole = Interval(value=nan, low=nan, high=nan)
    row = quality_row(TQ3_0, kl=hole, top1=hole, perplexity=float("inf"), kl_max=nan, kl_p99=hole)
    zero = Interval(value=0.0, low=0.0, high=0.0)
    floor = quality_row(F16, kl=zero, kl_p99=zero, kl_max=0, is_floor=True)
    needle = NeedleStage(
        status=StageStatus.INCONCLUSIVE, cells=(cell(TQ3_0, 512, 0.5, 1, CellOutcome.INCONCLUSIVE, seconds=nan),)
    )
    quality = QualityStage(status=StageStatus.PASSED, rows=(floor, row, quality_row(Q8_0)))
    return report(
        stages=(needle, quality, MemoryStage(status=StageStatus.PASSED, rows=(memory_row(TQ3_0, extra=1024),)))
    )


def one_pair() -> Report:
    return report(pairs=(TQ3_0,), stages=stages((TQ3_0,)))


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
