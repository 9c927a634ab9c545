"""Made-up values of the size of real ones: needles and memory, for tests of what is drawn from them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

from tqforge.core.pair import Pair
from tqforge.report.schema.base import CellOutcome, Interval, StageStatus
from tqforge.report.schema.rows import MemoryRow, NearMiss, NeedleCell, NeedleSummary
from tqforge.report.schema.stages import MemoryStage, NeedleStage

BITS = {"f16": 16.0, "q8_0": 8.5, "q5_0": 5.5, "q4_0": 4.5, "tq3_0": 3.5}
PAIRS = tuple(map(Pair.parse, ("f16", "q8_0", "q4_0", "tq3_0", "q8_0/tq3_0")))
STOCK = ("q8_0", "q5_0", "q4_0")
_MORE = ("q5_0", "f16/tq3_0", "q4_0/tq3_0", "tq3_0/q8_0", "q8_0/q4_0", "f16/q8_0", "tq3_0/f16")
TWELVE = (*PAIRS, *map(Pair.parse, _MORE))
F16, Q8_0, Q4_0, TQ3_0, MIXED = PAIRS
KL = {
    Q8_0: (0.0044, 0.943),
    Pair.parse("q5_0"): (0.0123, 0.896),
    Q4_0: (0.048, 0.852),
    TQ3_0: (0.28, 0.734),
    MIXED: (0.025, 0.910),
}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def pair_of(pair: Pair | str) -> Pair:
    return pair if isinstance(pair, Pair) else Pair.parse(pair)


def bits(pair: Pair | str) -> float:
    pair = pair_of(pair)
    return (BITS[pair.k] + BITS[pair.v]) / 2


def wilson(hits: int, n: int) -> Interval | None:
    if not n:
        return None
    z, p = 1.96, hits / n
    mid, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Interval(value=p, low=(mid - half) / (1 + z * z / n), high=(mid + half) / (1 + z * z / n))


def interval(value: float, spread: float = 0.12) -> Interval:
    return Interval(value=value, low=value * (1 - spread), high=min(value * (1 + spread), value + 0.03))


def cell(pair: Pair | str, length: int, depth: float, seed: int, outcome: CellOutcome, **more: Any) -> NeedleCell:
    score = {CellOutcome.HIT: 1.0, CellOutcome.PARTIAL: 0.5, CellOutcome.MISS: 0.0}.get(outcome)
    judged = score is not None
    near = (NearMiss(expected="VcMYB4", seen="VcMYB", distance=1),) if outcome is CellOutcome.MISS else ()
    values: dict[str, Any] = {
        "control": "f16" if pair_of(pair) == F16 else "none",
        "facts": ("FROSTBLOCK-7", "VcMYB4"),
        "fact_kind": "published" if seed == 1 else "random",
        "tokens": length - 3,
        "score": score,
        "exact": outcome is CellOutcome.HIT if judged else None,
        "found": ("FROSTBLOCK-7", "VcMYB4") if outcome is CellOutcome.HIT else (),
        "near_misses": near,
        "answer": "The locus is FROSTBLOCK-7 and the gene is VcMYB4."
        if outcome is CellOutcome.HIT
        else "The gene is VcMYB.",
        "prompt_sha256": digest(f"{length}-{depth}-{seed}"),
        "seconds": 1.7,
        "error": "SIGSEGV in llama_decode" if outcome is CellOutcome.ERROR else "",
    }
    return NeedleCell(pair=pair_of(pair), length=length, depth=depth, seed=seed, outcome=outcome, **{**values, **more})


def grid(
    pairs: Iterable[Pair | str], lengths: Iterable[int], depths: Iterable[float], seeds: Iterable[int]
) -> list[NeedleCell]:
    """Deterministic outcomes: worse with fewer bits and with length; one column where the control fails."""
    cells = []
    for pair in map(pair_of, pairs):
        for length in lengths:
            for depth in depths:
                for seed in seeds:
                    luck = int(digest(f"{pair}{length}{depth}{seed}")[:4], 16) / 0xFFFF
                    risk = min(0.9, length / 9000 * (16 - bits(pair)) / 12)
                    outcome = (
                        CellOutcome.HIT if luck > risk else CellOutcome.PARTIAL if luck > risk / 2 else CellOutcome.MISS
                    )
                    if length >= 4096 and depth == 0.5 and seed == 3:
                        outcome = CellOutcome.INCONCLUSIVE
                    cells.append(
                        cell(
                            pair,
                            length,
                            depth,
                            seed,
                            CellOutcome.HIT if pair == F16 and outcome != "inconclusive" else outcome,
                        )
                    )
    return cells


def summaries(cells: list[NeedleCell]) -> tuple[NeedleSummary, ...]:
    rows = []
    for pair in dict.fromkeys(cell.pair for cell in cells if cell.control != "no-needle"):
        mine = [cell for cell in cells if cell.pair == pair and cell.control != "no-needle"]
        for length in (None, *sorted({cell.length for cell in mine})):
            some = [cell for cell in mine if length in (None, cell.length)]
            number = {outcome: sum(cell.outcome is outcome for cell in some) for outcome in CellOutcome}
            n = number[CellOutcome.HIT] + number[CellOutcome.PARTIAL] + number[CellOutcome.MISS]
            rows.append(
                NeedleSummary(
                    pair=pair,
                    length=length,
                    n=n,
                    hits=number[CellOutcome.HIT],
                    partial=number[CellOutcome.PARTIAL],
                    misses=number[CellOutcome.MISS],
                    inconclusive=number[CellOutcome.INCONCLUSIVE],
                    errors=number[CellOutcome.ERROR],
                    mean_score=sum(cell.score or 0 for cell in some) / n if n else None,
                    rate=wilson(number[CellOutcome.HIT], n),
                )
            )
    return tuple(rows)


def needle_stage(
    pairs: Iterable[Pair | str] = PAIRS, lengths: Iterable[int] = (512, 2048, 4096), **more: Any
) -> NeedleStage:
    lengths = tuple(lengths)
    cells = grid(pairs, lengths, (0.0, 0.5, 1.0), (1, 2, 3))
    cells += [
        cell(F16, length, 0.9, 1, CellOutcome.MISS, control="no-needle", near_misses=(), answer="I do not know.")
        for length in lengths
    ]
    values: dict[str, Any] = {
        "status": StageStatus.PASSED,
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


def memory_row(pair: Pair | str, n_ctx: int = 4096, extra: int = 0) -> MemoryRow:
    pair = pair_of(pair)
    k, v = pair.k, pair.v
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


def memory_stage(pairs: Iterable[Pair | str] = PAIRS) -> MemoryStage:
    return MemoryStage(status=StageStatus.PASSED, seconds=4.0, rows=tuple(memory_row(pair) for pair in pairs))
