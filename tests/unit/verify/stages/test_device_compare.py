"""A device against the CPU: the figures of known logits, and every way to fall short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tqforge.adapters.llama.graphs import Graph, Nodes
from tqforge.core.pair import Pair
from tqforge.report.judge import statuses
from tqforge.report.judge.reasons import DeviceFault, DeviceProblem
from tqforge.report.render.sentences.reasons import reasons
from tqforge.report.schema.base import Interval, StageStatus
from tqforge.report.schema.rows import DeviceRow
from tqforge.report.schema.stages import DeviceStage
from tqforge.verify.stages.device import compare
from tqforge.verify.stages.device import stage as device
from tqforge.verify.stages.device.compare import DeviceVsCpu, TraceResult

RNG = np.random.default_rng(7)
PROMPT, STEPS = 40, 6


def logits() -> compare.Logits:
    return RNG.standard_normal((PROMPT + STEPS - 1, 50)).astype(np.float32)


def greedy(rows: compare.Logits) -> list[int]:
    return [int(row.argmax()) for row in rows[PROMPT - 1 :]]


def both(name: str, cpu: compare.Logits, there: compare.Logits, **changes: Any) -> DeviceVsCpu:
    ran = {"kernel_flash_attn_ext_vec": 3, "kernel_set_rows_f32": 6, "kernel_mul_mv": 1}
    seen = TraceResult(logits=there, tokens=greedy(cpu), **({"dispatches": ran} | changes))
    return DeviceVsCpu(Pair.parse(name), PROMPT, seen, TraceResult(logits=cpu, tokens=greedy(cpu), text="so"))


def test_equal_logits_differ_by_nothing() -> None:
    cpu = logits()
    row = compare.row(both("f16/f16", cpu, cpu), None, "MTL0")
    assert (row.kl.value, row.top1, row.parted, row.text) == (0.0, 1.0, None, "so")
    assert (row.dispatches, row.attention, row.writes, row.tokens) == (10, 3, 6, PROMPT + STEPS - 1)
    assert (row.kl_f16_device, row.kl_f16_cpu) == (None, None)


def test_the_first_parting_and_its_gaps() -> None:
    cpu = logits()
    there = cpu.copy()
    here = PROMPT - 1 + 2
    best = int(cpu[here].argmax())
    other = (best + 1) % 50
    there[here, other] = cpu[here, best] + 0.25
    gap = float(cpu[here, best] - cpu[here, other])
    assert compare.parting(both("p", cpu, there)) == pytest.approx((2, gap, 0.25))


def test_the_distance_from_f16_is_taken_within_one_backend_and_over_the_prompt() -> None:
    cpu, moved = logits(), logits()
    control = both("f16/f16", cpu, cpu)
    row = compare.row(both("q/q", moved, moved), control, "MTL0")
    assert row.kl_f16_device == row.kl_f16_cpu
    assert row.kl_f16_cpu is not None
    assert row.kl_f16_cpu.value == pytest.approx(float(compare.kl(cpu[:PROMPT], moved[:PROMPT]).mean()))


def interval(value: float, width: float = 0.0) -> Interval:
    return Interval(value=value, low=value - width, high=value + width)


def row(pair: str = "tq3_0/tq3_0", kl: float = 1e-3, **changes: Any) -> DeviceRow:
    values: dict[str, Any] = {"dispatches": 10, "attention": 3, "writes": 6, "tokens": 55, "kl_max": kl, "top1": 1.0}
    values |= {"kl_same": interval(kl), "error_cpu": 0.02, "error_device": 0.02}
    return DeviceRow(pair=Pair.parse(pair), kl=interval(kl), **(values | changes))


FLOOR = row("f16/f16", 1e-4)


def judged(*rows: DeviceRow) -> tuple[StageStatus, str]:
    verdict = statuses.device(DeviceStage(rows=rows))
    return verdict.status, reasons(verdict.reasons)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"kl_same": interval(1.3e-3)}, "0.0013 on the same rows is above 0.0012"),
        ({"kl_same": interval(float("nan"))}, "on the same rows is above"),
        ({"error_cpu": 0.02, "error_device": 0.023}, "rows it wrote is 0.023, of the CPU's 0.02"),
        ({"error_cpu": 0.02, "error_device": float("nan")}, "rows it wrote is nan"),
        ({"dispatches": 0, "attention": 0, "writes": 0}, "dispatched"),
        ({"attention": 0}, "dispatched"),
        ({"writes": 0}, "dispatched"),
        ({"strays": ("FLASH_ATTN on CPU (30, first node_21)",)}, "left the device: FLASH_ATTN on CPU"),
        ({"note": "missing-kernel in k"}, "missing-kernel"),
        ({"kl_f16_device": interval(0.5, 0.1), "kl_f16_cpu": interval(0.2, 0.1)}, "KL from f16 is 0.5 on the device"),
    ],
)
def test_every_way_to_fall_short(changes: dict[str, Any], word: str) -> None:
    good = row(kl_f16_device=interval(0.25, 0.1), kl_f16_cpu=interval(0.2, 0.1))
    assert judged(FLOOR, good) == (StageStatus.PASSED, "")
    status, reason = judged(FLOOR, row(**changes))
    assert status is StageStatus.FAILED
    assert word in reason


def test_without_a_floor_or_a_pair_there_is_no_verdict() -> None:
    assert judged(row())[0] is StageStatus.INCONCLUSIVE
    assert judged(FLOOR)[0] is StageStatus.INCONCLUSIVE
    assert judged()[0] is StageStatus.INCONCLUSIVE
    assert judged(FLOOR, row(error_device=None))[0] is StageStatus.INCONCLUSIVE
    assert judged(FLOOR, row(kl_same=None)) == (
        StageStatus.INCONCLUSIVE,
        "Not compared on the same rows: tq3_0/tq3_0.",
    )


def test_a_real_gpu_counts_no_dispatches() -> None:
    assert list(statuses.device_problems(row(dispatches=None, attention=None, writes=None), 1e-4)) == []


def test_the_path_reaches_both_kernels_of_attention() -> None:
    assert any(20 <= size < 32 for size in device.BATCHES), "the type's own matrix kernel"
    assert any(size < 20 for size in device.BATCHES), "the vec kernel with several queries"
    assert device.GREEDY > 1, "the vec kernel with one query"
    assert device.cut(list(range(44)), device.BATCHES)[1] == list(range(28, 36))
    assert [str(pair) for pair in device.pairs()] == ["f16/f16", "tq3_0/tq3_0", "q8_0/tq3_0", "f16/tq3_0"]


def test_the_bar_is_for_the_same_rows_and_a_cache_of_its_own_is_only_shown() -> None:
    shaky = row(kl=0.3, kl_same=interval(1e-3), kl_cpu=interval(0.1), error_cpu=1e-2, error_device=1.1e-2)
    rows = statuses.with_limits([FLOOR, shaky])
    assert rows[0].limit is None
    assert rows[1].limit == pytest.approx(0.0012)
    assert judged(*rows) == (StageStatus.PASSED, "")


def test_the_run_with_the_same_rows_gives_their_kl_and_their_errors() -> None:
    cpu, moved = logits(), logits()
    alone = both("q/q", cpu, cpu)
    written = [("cache_k_l0", 0.01, 0.02), ("cache_v_l0", 0.03, 0.06)]
    one = DeviceVsCpu(alone.pair, alone.prompt, alone.device, alone.cpu, same=TraceResult(moved, [], written=written))
    found = compare.row(one, None, "MTL0")
    assert found.kl_same is not None
    assert found.kl_same.value == pytest.approx(float(compare.kl(moved, cpu).mean()))
    assert (found.error_cpu, found.error_device) == pytest.approx((0.02, 0.04))
    without = compare.row(alone, None, "MTL0")
    assert (without.kl_same, without.error_cpu, without.error_device) == (None, None, None)


def test_a_wrong_k_is_not_lost_beside_a_coarse_v() -> None:
    cpu = logits()
    fine = [("cache_k_l0", 3e-5, 4e-5), ("cache_v_l0", 0.025, 0.0251)]
    wrong = [("cache_k_l0", 3e-5, 1e-3), *fine[1:]]
    alone = both("q8_0/tq3_0", cpu, cpu)
    for written, faults in ((fine, []), (wrong, [DeviceProblem(DeviceFault.WRITES, "K", 1e-3, 3e-5)])):
        again = TraceResult(cpu, [], written=written)
        found = compare.row(DeviceVsCpu(alone.pair, PROMPT, alone.device, alone.cpu, same=again), None, "MTL0")
        assert list(statuses.device_problems(found, 1e-4)) == faults


def test_a_reference_that_was_not_on_the_cpu_is_noticed() -> None:
    cpu = logits()
    nodes = (Nodes(op="FLASH_ATTN", backend="MTL0", count=30, first="node_21"),)
    graph = Graph(splits=2, backends=("MTL0",), nodes=nodes)
    wrong = DeviceVsCpu(Pair.parse("q/q"), PROMPT, TraceResult(cpu, []), TraceResult(cpu, [], graphs=[graph]))
    found = compare.row(wrong, None, "MTL0")
    assert found.cpu_strays == ("FLASH_ATTN on MTL0 (30, first node_21)",)
    status, reason = judged(FLOOR, found)
    assert status is StageStatus.FAILED
    assert "the CPU's own run had FLASH_ATTN on MTL0" in reason


def test_the_cpu_alone_is_compared_with_itself() -> None:
    cpu, moved = logits(), logits()
    one = both("q/q", cpu, cpu)
    with_single = DeviceVsCpu(one.pair, one.prompt, one.device, one.cpu, TraceResult(logits=moved, tokens=[]))
    found = compare.row(with_single, None, "MTL0").kl_cpu
    assert found is not None
    assert found.value == pytest.approx(float(compare.kl(cpu, moved).mean()))
    assert compare.row(one, None, "MTL0").kl_cpu is None
