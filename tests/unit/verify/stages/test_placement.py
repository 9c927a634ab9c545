# ruff: noqa: E501 - lines as llama.cpp prints them
"""Where the scheduler says the ops stand, and that a fall-back is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tqforge.adapters.llama.graphs import Graph, SchedulerLog
from tqforge.core.pair import Pair
from tqforge.errors import LoadError
from tqforge.report.judge import statuses
from tqforge.report.schema.base import StageStatus
from tqforge.verify.device import Device
from tqforge.verify.stages import placement
from tqforge.verify.stages.device import compare
from tqforge.verify.stages.device.compare import TraceResult

#: As llama.cpp b11312 prints it.
HEAD = """
## SPLIT #0: CPU # 0 inputs
node #  0 (  GET_ROWS):                 embd (   1K) [  CPU         ] use=3,c=1:    token_embd.weight (  54M) [  CPU         ]
"""
ON_DEVICE = """
## SPLIT #1: MTL0 # 3 inputs: [embd (   1K)] [inp_pos (   0K)] [attn_inp_kq_mask (   1K)]
node #  1 (  RMS_NORM):               norm-0 (   1K) [ MTL0         ] use=1,c=1:                 embd (   1K) [  CPU         ]
node # 10 (  SET_ROWS):    cache_k_l0 (view) (  84K) [ MTL0         ] use=0,c=1:               Kcur-0 (   0K) [ MTL0         ]
node # 13 (  SET_ROWS):    cache_v_l0 (view) (  84K) [ MTL0         ] use=0,c=1:               Vcur-0 (   0K) [ MTL0         ]
node # 21 (FLASH_ATTN):              node_21 (   1K) [ MTL0         ] use=1,c=1:               Qcur-0 (   1K) [ MTL0         ]
"""
FALLEN = ON_DEVICE.replace(
    "(   1K) [ MTL0         ] use=1,c=1:               Qcur", "(   1K) [  CPU         ] use=1,c=1:               Qcur"
)


def graphs(text: str) -> list[Graph]:
    seen = SchedulerLog()
    assert not seen("llama_context: n_ctx = 256")
    for line in text.splitlines():
        assert seen(line) == line.startswith(("## SPLIT", "node #"))
    return list(seen.take())


def run(text: str, **changes: Any) -> TraceResult:
    values: dict[str, Any] = {"dispatches": {"kernel_flash_attn_ext_vec_tq3_0_dk64_dv64": 2, "kernel_set_rows": 4}}
    return TraceResult(logits=np.zeros((1, 1), dtype=np.float32), tokens=[], graphs=graphs(text), **(values | changes))


def test_the_words_of_the_scheduler() -> None:
    first, second = graphs(HEAD + ON_DEVICE + HEAD + FALLEN)
    assert (first.splits, first.backends) == (2, ("CPU", "MTL0"))
    assert {(n.op, n.backend, n.count) for n in first.nodes} == {
        ("GET_ROWS", "CPU", 1), ("RMS_NORM", "MTL0", 1), ("SET_ROWS", "MTL0", 2), ("FLASH_ATTN", "MTL0", 1),
    }  # fmt: skip
    assert ("FLASH_ATTN", "CPU", 1) in {(n.op, n.backend, n.count) for n in second.nodes}
    assert compare.placed([first, second], "MTL0") == {"SET_ROWS": 2, "FLASH_ATTN": 0}


def test_everything_on_the_device_passes() -> None:
    check = placement.check("tq3_0/tq3_0", run(HEAD + ON_DEVICE))
    assert check.status is StageStatus.PASSED
    assert check.observed == "2 SET_ROWS and 1 FLASH_ATTN_EXT on MTL0, 2 graph splits, 6 dispatches"


def test_one_fallen_graph_among_good_ones_is_noticed() -> None:
    check = placement.check("tq3_0/tq3_0", run(HEAD + ON_DEVICE + HEAD + FALLEN + HEAD + ON_DEVICE))
    assert check.status is StageStatus.FAILED
    assert check.observed == "FLASH_ATTN on CPU (1, first node_21)"


def test_a_write_on_the_cpu_is_noticed() -> None:
    text = ON_DEVICE.replace("cache_v_l0 (view) (  84K) [ MTL0", "cache_v_l0 (view) (  84K) [  CPU")
    assert "SET_ROWS on CPU (1, first cache_v_l0 (view))" in placement.check("p", run(HEAD + text)).observed


def test_nothing_said_or_nothing_run_is_no_pass() -> None:
    assert placement.check("p", run("")).status is StageStatus.FAILED
    assert placement.check("p", run(HEAD)).status is StageStatus.FAILED
    idle = placement.check("p", run(HEAD + ON_DEVICE, dispatches={"kernel_set_rows": 4}))
    assert (idle.status, idle.observed) == (StageStatus.FAILED, "no attention was dispatched")
    assert (
        placement.check("p", run(HEAD + ON_DEVICE, dispatches=None)).status is StageStatus.PASSED
    )  # a real GPU counts none
    assert placement.check("p", run(HEAD + ON_DEVICE, faults="divergence in k")).status is StageStatus.FAILED


def test_a_control_that_does_not_fall_back_makes_the_stage_fail() -> None:
    assert placement.control(run(HEAD + FALLEN)).status is StageStatus.PASSED
    blind = placement.control(run(HEAD + ON_DEVICE))
    assert blind.status is StageStatus.FAILED
    assert "not noticed" in blind.reason
    good = placement.check("p", run(HEAD + ON_DEVICE))
    assert statuses.checks(placement._stage([good, blind])).status is StageStatus.FAILED
    assert statuses.checks(placement._stage([good, placement.control(run(HEAD + FALLEN))])).status is StageStatus.PASSED


class _Loaded:
    """A model that answers with one run, or with an error."""

    def __init__(self, answer: TraceResult | LoadError) -> None:
        self._answer = answer

    def trace(self, *_: Any) -> TraceResult:
        if isinstance(self._answer, LoadError):
            raise self._answer
        return self._answer


EMULATOR, METAL = Device(title="Metal emulator", folder=Path("/h")), Device(title="Metal")


@pytest.mark.parametrize(
    ("pair", "there", "status"),
    [
        ("q8_0/q8_0", EMULATOR, StageStatus.SKIPPED),
        ("q8_0/q8_0", METAL, StageStatus.PASSED),
        ("q4_0/q4_0", EMULATOR, StageStatus.PASSED),
        ("q8_0/tq3_0", EMULATOR, StageStatus.PASSED),
    ],
)
def test_pairs_that_the_host_has_no_kernels_for_are_deferred(pair: str, there: Device, status: StageStatus) -> None:
    loaded: Any = _Loaded(run(HEAD + ON_DEVICE))
    check = placement._one(loaded, Pair.parse(pair), there)
    assert check.status is status
    assert bool(check.reason) == (status is StageStatus.SKIPPED)


def test_a_pair_that_stops_fails_and_the_others_go_on() -> None:
    loaded: Any = _Loaded(LoadError("The Metal emulator stopped f16/tq3_0: missing-kernel in k", where="llama_decode"))
    check = placement._one(loaded, Pair("f16", "tq3_0"), EMULATOR)
    assert check.status is StageStatus.FAILED
    assert check.observed == "The Metal emulator stopped f16/tq3_0: missing-kernel in k (llama_decode)"
