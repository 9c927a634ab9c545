"""The memory plan as data: what a context needs, what a machine grants, which pair follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_parts import cell as needle_cell
from synthetic_parts import interval, summaries
from synthetic_report import report
from synthetic_stages import quality_row

from tqforge.adapters.gguf_io import ModelFacts
from tqforge.adapters.llama.api.cache import CachePart, Reserved
from tqforge.adapters.llama.child.trace import buffers
from tqforge.core.pair import F16, Pair
from tqforge.errors import UsageError
from tqforge.report.judge import budget, statuses
from tqforge.report.judge.budget import MemoryBudget, advise
from tqforge.report.judge.thresholds import ELSEWHERE, GIB
from tqforge.report.render.sentences import pairs
from tqforge.report.schema.base import CellOutcome, Choice, PairLevel, StageStatus
from tqforge.report.schema.rows import MemoryNeed, PairVerdict, PlanRow
from tqforge.report.schema.stages import NeedleStage, PlanStage, QualityStage
from tqforge.verify import settings
from tqforge.verify.stages import plan

MIB = 1 << 20
FACTS = ModelFacts(
    path=Path("m.gguf"), size=1, name="m", arch="llama", layers=2, heads=9, kv_heads=(3, 3), head_k=64, head_v=64,
    trained_context=8192, vocabulary=10, swa_window=None, mla=False, recurrent=False, chat_template=None, bos="",
    eos="", bos_id=None,
)  # fmt: skip
SIZES = {"f16": (1, 2), "q8_0": (32, 34), "tq3_0": (32, 14)}
LOG = """
load_tensors:   CPU_Mapped model buffer size =   462.96 MiB
load_tensors:   CPU_REPACK model buffer size =    28.05 MiB
llama_context:        CPU  output buffer size =     0.19 MiB
llama_kv_cache_iswa: creating non-SWA KV cache, size = 4096 cells
llama_kv_cache:        CPU KV buffer size =    12.00 MiB
llama_kv_cache: size =   12.00 MiB (  4096 cells,   2 layers,  1/1 seqs), K (q8_0):    8.00 MiB, V (tq3_0):    4.00 MiB
llama_kv_cache_iswa: creating     SWA KV cache, size = 1024 cells
llama_kv_cache: size =    6.00 MiB (  1024 cells,   4 layers,  1/1 seqs), K (q8_0):    4.00 MiB, V (tq3_0):    2.00 MiB
sched_reserve:        CPU compute buffer size =    90.00 MiB
sched_reserve:        CPU compute buffer size =    98.25 MiB
""".splitlines()


def test_the_log_is_read_to_the_hundredth() -> None:
    found = buffers.read(LOG)
    assert found.weights == round(462.96 * MIB) + round(28.05 * MIB)
    assert found.compute == round(98.25 * MIB) + round(0.19 * MIB), "the last of a buffer, and the output"
    assert [(c.sliding, c.cells, c.layers, c.bytes) for c in found.caches] == [
        (False, 4096, 2, 12 * MIB),
        (True, 1024, 4, 6 * MIB),
    ]
    assert buffers.read(["nothing"]) == buffers.Buffers()


def trial(*caches: tuple[bool, int, int]) -> Reserved:
    parts = (CachePart(sliding=sliding, cells=cells, layers=layers, bytes=0) for sliding, cells, layers in caches)
    return Reserved(cells=1, weights=0, compute=7, caches=tuple(parts))


def test_planned_from_block_sizes() -> None:
    facts = replace(FACTS, weights=1000)  # two layers of 3 heads of 64 values, K and V alike
    need = plan.planned_need(Pair("q8_0", "tq3_0"), trial((False, 1024, 2)), SIZES, facts)
    values = 2 * 3 * 64 * 1024
    assert need == MemoryNeed(weights=1000, kv=values * 34 // 32 + values * 14 // 32, compute=7)
    assert need.total == 1000 + values * 48 // 32 + 7


def test_layers_with_a_sliding_window_are_planned_apart() -> None:
    whole = plan.planned_need(Pair("f16", "f16"), trial((False, 4096, 2)), SIZES, FACTS)
    mixed = plan.planned_need(Pair("f16", "f16"), trial((False, 4096, 1), (True, 1024, 1)), SIZES, FACTS)
    assert (mixed.kv, mixed.kv_swa) == (whole.kv // 2, whole.kv // 8)


def test_a_cache_that_was_planned_wrongly_is_found() -> None:
    planned = MemoryNeed(weights=1, kv=100 * MIB, compute=1)
    near = planned.model_copy(update={"kv": 100 * MIB + 5000})
    far = planned.model_copy(update={"kv": 101 * MIB})
    assert statuses.off(PlanRow(pair=F16, n_ctx=1, planned=planned, measured=near)) == 0
    assert statuses.off(PlanRow(pair=F16, n_ctx=1, planned=planned, measured=far)) == MIB
    assert statuses.off(PlanRow(pair=F16, n_ctx=1, planned=planned)) == 0


def test_lengths_stop_where_the_model_was_trained() -> None:
    assert plan.chosen_lengths(settings.FULL, 8192) == (8192, (4096, 8192))
    assert plan.chosen_lengths(settings.FULL, 131072) == (32768, (4096, 16384, 32768))
    asked = replace(settings.FULL, plan_context=5000)
    assert plan.chosen_lengths(asked, 131072)[0] == 5120


@pytest.mark.parametrize(
    ("grant", "memory", "usable"),
    [
        (
            MemoryBudget(memory=16 * GIB, mac_gpu=True),
            16 * GIB,
            16 * GIB * 2 // 3,
        ),  # 10,922.67 MiB, as M1 and M2 log it
        (MemoryBudget(memory=16 * GIB, mac_gpu=True), 32 * GIB, 32 * GIB * 2 // 3),  # 21,845.33
        (MemoryBudget(memory=16 * GIB, mac_gpu=True), 64 * GIB, 48 * GIB),  # 49,152
        (MemoryBudget(memory=16 * GIB, mac_gpu=True), 96 * GIB, 72 * GIB),  # 73,728
        (
            MemoryBudget(memory=16 * GIB, mac_gpu=True, working_set=12 * GIB),
            16 * GIB,
            12 * GIB,
        ),  # the driver's own word
        (MemoryBudget(memory=16 * GIB, mac_gpu=True, working_set=12 * GIB), 8 * GIB, 8 * GIB * 2 // 3),
        (MemoryBudget(memory=16 * GIB), 10 * GIB, 8 * GIB),
    ],
)
def test_what_a_machine_grants(grant: MemoryBudget, memory: int, usable: int) -> None:
    assert grant.usable(memory) == pytest.approx(usable, abs=2)


def test_a_budget_made_from_a_need_grants_it() -> None:
    for grant in (MemoryBudget(memory=16 * GIB), MemoryBudget(memory=16 * GIB, mac_gpu=True)):
        for need in (123_456_789, 3 * GIB + 5, 40 * GIB):
            asked = grant.asked(need)
            assert need <= grant.usable(asked) < 1.03 * need
    assert budget.readable(int(1.234 * GIB)) == pytest.approx(1.24 * GIB, rel=0.01)


def rows(**needs: int) -> list[PlanRow]:
    made = []
    for name, kv in needs.items():
        pair = Pair.parse(name.replace("__", "/"))
        need = MemoryNeed(weights=100 * MIB, kv=kv * MIB, compute=50 * MIB)
        made.append(PlanRow(pair=pair, n_ctx=8192, planned=need, measured=need))
    return made


ROWS = rows(f16__f16=180, q8_0__q8_0=100, q8_0__tq3_0=70, q4_0__q4_0=50, tq3_0__tq3_0=40)
Q8_0, Q4_0, TQ3_0, MIXED = Pair.both("q8_0"), Pair.both("q4_0"), Pair.both("tq3_0"), Pair("q8_0", "tq3_0")
LEVELS = {Q8_0: PairLevel.SAFE, MIXED: PairLevel.SAFE, Q4_0: PairLevel.UNSAFE, TQ3_0: PairLevel.UNSAFE}
VERDICTS = {pair: PairVerdict(pair=pair, bits=1, level=level, kl=interval(0.1)) for pair, level in LEVELS.items()}
CLOSENESS = tuple(LEVELS)


@pytest.mark.parametrize(
    ("usable", "pair", "words"),
    [
        (400, F16, "f16 itself fits"),
        (300, Q8_0, "closer to f16, but f16/f16 would need 330 MiB or more"),
        (230, MIXED, "smaller, but not safe here: q4_0/q4_0 (unsafe) and tq3_0/tq3_0 (unsafe)"),
        (215, None, "the smallest safe pair, q8_0/tq3_0, needs 220 MiB; what fits is not safe here"),
        (100, None, "none fits"),
    ],
)
def test_the_closest_safe_pair_that_fits(usable: int, pair: Pair | None, words: str) -> None:
    memory = round(usable * MIB / ELSEWHERE) + 8
    found = budget.recommend(ROWS, VERDICTS, CLOSENESS, memory, MemoryBudget(memory=GIB))
    assert found.pair == pair
    assert words in pairs.reason(found)
    assert (found.need is None) == (pair is None)


def test_it_says_when_no_needles_were_tried() -> None:
    memory = round(230 * MIB / ELSEWHERE) + 8
    found = budget.recommend(ROWS, VERDICTS, CLOSENESS, memory, MemoryBudget(memory=GIB))
    assert "without needles" in pairs.reason(found)
    tried = {pair: one.model_copy(update={"needles": 9}) for pair, one in VERDICTS.items()}
    assert "without needles" not in pairs.reason(
        budget.recommend(ROWS, tried, CLOSENESS, memory, MemoryBudget(memory=GIB))
    )


def test_nothing_is_recommended_from_quality_that_was_not_measured() -> None:
    found = budget.recommend(ROWS, {}, (), 16 * GIB, MemoryBudget(memory=16 * GIB))
    assert found.pair is None
    assert "without measured quality" in pairs.reason(found)
    part = budget.recommend(ROWS, {MIXED: VERDICTS[MIXED]}, (MIXED,), 16 * GIB, MemoryBudget(memory=GIB))
    assert part.pair == F16


def test_three_budgets_show_where_the_choice_changes() -> None:
    grant = MemoryBudget(memory=16 * GIB)
    asked = budget.default_budgets(ROWS, grant)
    chosen = [budget.recommend(ROWS, VERDICTS, CLOSENESS, one, grant).pair for one in asked]
    assert len(asked) == 3
    assert chosen == [F16, MIXED, None]
    assert budget.default_budgets([], grant) == (16 * GIB,)


def test_a_run_ends_with_verdicts_and_recommendations() -> None:
    quality = QualityStage(
        status=StageStatus.PASSED,
        rows=tuple(
            quality_row(pair, kl=interval(kl))
            for pair, kl in (("q8_0/q8_0", 0.004), ("q8_0/tq3_0", 0.03), ("tq3_0/tq3_0", 2.1))
        ),
    )
    made = PlanStage(status=StageStatus.PASSED, n_ctx=8192, rows=tuple(ROWS), budgets=(round(230 * MIB / 0.8) + 8,))
    whole = advise(report(stages=(quality, made)))
    assert {one.pair: one.level for one in whole.verdicts} == {
        TQ3_0: "unsafe",
        MIXED: "safe",
        Q8_0: "safe",
    }
    (choice,) = whole.stages[1].recommendations  # type: ignore[union-attr]
    assert choice.pair == MIXED
    alone = advise(report(stages=(made,)))
    assert alone.stages[0].recommendations[0].pair is None  # type: ignore[union-attr]


def test_lost_needles_make_a_close_pair_no_recommendation() -> None:
    cells = [needle_cell("q8_0/tq3_0", 2048, 0.5, seed, CellOutcome.MISS) for seed in range(12)]
    needle = NeedleStage(status=StageStatus.PASSED, cells=tuple(cells), summaries=summaries(cells))
    quality = QualityStage(status=StageStatus.PASSED, rows=(quality_row("q8_0/tq3_0", kl=interval(0.01)),))
    made = PlanStage(status=StageStatus.PASSED, n_ctx=8192, rows=tuple(ROWS), budgets=(round(230 * MIB / 0.8) + 8,))
    whole = advise(report(stages=(needle, quality, made)))
    assert whole.verdicts[0].level == "unsafe"
    assert whole.stages[2].recommendations[0].pair is None  # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "size"), [("16GB", 16 << 30), ("900 MB", 900 << 20), ("1.5g", 3 << 29)])
def test_sizes(text: str, size: int) -> None:
    assert settings.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "16", "GB", "-1GB", "0GB", "16 bananas"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        settings.parse_size(text)


@pytest.mark.parametrize(
    ("memory", "share"),
    [(36 * GIB - 1, 2 / 3), (36 * GIB, 3 / 4), (36 * GIB + 1, 3 / 4), (8 * GIB, 2 / 3)],
)
def test_a_large_mac_grants_a_larger_share(memory: int, share: float) -> None:
    assert MemoryBudget(memory=GIB, mac_gpu=True).usable(memory) == int(memory * share)


@pytest.mark.parametrize(
    ("budget_asked", "usable"), [(15.1, 12), (16.0, 12), (16.9, 12), (14.9, 14.9 * 2 / 3), (17.1, 11.4)]
)
def test_the_driver_speaks_for_this_machine_alone(budget_asked: float, usable: float) -> None:
    machine = MemoryBudget(memory=16 * GIB, mac_gpu=True, working_set=12 * GIB)
    assert machine.usable(round(budget_asked * GIB)) == pytest.approx(usable * GIB, rel=0.001)


@pytest.mark.parametrize("size", [1, 9, 1023, 1024, 1025, 10_239, 1_003_500_000, 10 * GIB, 10 * GIB + 1, 999 * GIB])
def test_a_budget_is_rounded_up_by_a_hundredth_at_most(size: int) -> None:
    assert size <= budget.readable(size) <= 1.011 * size
    assert budget.readable(1_003_500_000) == 958 * MIB


def test_the_pair_that_fits_to_the_byte() -> None:
    need = ROWS[2].planned.total
    machine = MemoryBudget(memory=need, mac_gpu=True, working_set=need)
    assert budget.recommend(ROWS, VERDICTS, CLOSENESS, need, machine).pair == MIXED
    less = MemoryBudget(memory=need, mac_gpu=True, working_set=need - 1)
    found = budget.recommend(ROWS, VERDICTS, CLOSENESS, need, less)
    assert (found.outcome, found.smallest, found.smallest_need) == (Choice.TOO_SMALL, MIXED, need)


def test_a_recommendation_holds_the_figures_behind_it() -> None:
    memory = round(230 * MIB / ELSEWHERE) + 8
    found = budget.recommend(ROWS, VERDICTS, CLOSENESS, memory, MemoryBudget(memory=GIB))
    assert (found.outcome, found.pair, found.verdict) == (Choice.FITS, MIXED, VERDICTS[MIXED])
    assert (found.closer, found.closer_need) == ((F16, Q8_0), ROWS[1].planned.total)
    assert {one.pair for one in found.unsafe} == {Q4_0, TQ3_0}
    assert found.measured
    planned = [row.model_copy(update={"measured": None}) for row in ROWS]
    assert not budget.recommend(planned, VERDICTS, CLOSENESS, memory, MemoryBudget(memory=GIB)).measured
    whole = budget.recommend(ROWS, VERDICTS, CLOSENESS, 16 * GIB, MemoryBudget(memory=16 * GIB))
    assert (whole.outcome, whole.pair, whole.closer, whole.unsafe) == (
        Choice.REFERENCE,
        F16,
        (),
        (VERDICTS[Q4_0], VERDICTS[TQ3_0]),
    )


def test_a_measured_need_goes_before_a_planned_one() -> None:
    row = ROWS[0].model_copy(update={"measured": MemoryNeed(weights=1, kv=2, compute=3)})
    assert budget.need(row).total == 6
    assert budget.need(row.model_copy(update={"measured": None})) == row.planned
