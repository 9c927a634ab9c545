"""What is asked of upstream's test-backend-ops, how its words are counted, and what makes a run worthless."""

from __future__ import annotations

import re

import pytest

from tqforge.adapters.llama import emulator_report
from tqforge.report.judge import statuses
from tqforge.report.render.sentences.reasons import reasons
from tqforge.report.schema.base import StageStatus
from tqforge.verify import device
from tqforge.verify.stages.ops import backend_ops
from tqforge.verify.stages.ops import stage as ops
from tqforge.verify.stages.ops.backend_ops import Job, Said

GREEN, RED, OFF = "\x1b[1;32m", "\x1b[1;31m", "\x1b[0m"
CASE = "hsk=64,hsv=64,nh=4,nr23=[4,1],kv=512,nb=1,type_K=tq3_0,type_V=tq3_0,permute=[0,1,2,3]"
SAID = f"""load_backend: loaded MTL backend from libmetal-emulator-fast.so
Testing 2 devices

Backend 1/2: CPU
  Skipping
Backend 2/2: MTL0
  Device description: Metal emulator (kernels executed on the CPU, fast build)
  Device memory: 16384 MB (16384 MB free)

  FLASH_ATTN_EXT({CASE}): {GREEN}OK{OFF}
  FLASH_ATTN_EXT({CASE},n=2): not supported [MTL0]
  FLASH_ATTN_EXT({CASE},n=3): [FLASH_ATTN_EXT] NMSE = 0.002 > 0.0005 {RED}FAIL{OFF}
  FLASH_ATTN_EXT({CASE},n=4): {GREEN}OK{OFF}
  2/3 tests passed
  Backend MTL0: {RED}FAIL{OFF}
1/2 backends passed
{RED}FAIL{OFF}
"""
JOB = Job("FLASH_ATTN_EXT", "tq3_0/tq3_0", "type_K=tq3_0")


def test_cases_are_counted_as_the_program_counts_them() -> None:
    said = backend_ops.parse(SAID)
    assert (said.passed, said.failed, said.unsupported, said.complete) == (2, 1, 1, True)
    assert said.wrong == (f"FLASH_ATTN_EXT({CASE},n=3) [FLASH_ATTN_EXT] NMSE = 0.002 > 0.0005",)


def test_a_case_it_died_in_is_wrong() -> None:
    cut = SAID.split("n=4):", maxsplit=1)[0] + "n=4): "
    said = backend_ops.parse(cut)
    assert (said.passed, said.failed, said.complete) == (1, 1, False)
    assert said.unfinished.endswith("n=4)")
    row = backend_ops.row(JOB, "Metal emulator", said, "SIGSEGV", dispatches=3, seconds=1)
    assert row.failed == 2
    assert "SIGSEGV" in row.note
    assert "ended in FLASH_ATTN_EXT" in row.note


def good(**changes: object) -> Said:
    return Said(**{"passed": 3, "complete": True, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "how", "dispatches", "word"),
    [
        (good(), "", 0, "nothing was dispatched"),
        (good(complete=False), "", 5, "own count"),
        (good(), "read-write-race in kernel_x at fa.metal:7", 5, "read-write-race"),
        (good(), "exit status 3", 5, "exit status 3"),
        (good(passed=0), "", 5, "0 passed, 0 failed"),
        (good(failed=1), "", 5, "3 passed, 1 failed"),
    ],
)
def test_what_makes_a_run_fail(said: Said, how: str, dispatches: int, word: str) -> None:
    fine = backend_ops.row(JOB, "CPU", good(), "", dispatches=None, seconds=1)
    row = backend_ops.row(JOB, "Metal emulator", said, how, dispatches=dispatches, seconds=1)
    assert statuses.ops(ops._stage([fine], "", "")) == statuses.PASSED
    verdict = statuses.ops(ops._stage([fine, row], "", ""))
    assert verdict.status is StageStatus.FAILED
    assert word in reasons(verdict.reasons)


def test_without_a_device_the_cpu_part_is_kept_and_the_stage_skipped() -> None:
    fine = backend_ops.row(JOB, "CPU", good(), "", dispatches=None, seconds=1)
    stage = ops._stage([fine], "the emulator needs clang++-19", "Install it.")
    verdict = statuses.ops(stage)
    assert (verdict.status, stage.remedy, len(stage.rows)) == (StageStatus.SKIPPED, "Install it.", 1)
    assert "clang++-19" in reasons(verdict.reasons)
    assert "clang++-19" in stage.notes[1]
    wrong = backend_ops.row(JOB, "CPU", good(failed=1), "", dispatches=None, seconds=1)
    assert statuses.ops(ops._stage([wrong], "no clang", "Install it.")).status is StageStatus.FAILED


def test_the_plan_asks_for_every_op_of_the_type_and_of_a_stock_type() -> None:
    jobs = backend_ops.plan((64, 128))
    asked = {(job.op, job.of) for job in jobs}
    for name in ("tq3_0", "q4_0"):
        assert {("SET_ROWS", name), ("GET_ROWS", name), ("CPY", name), ("FLASH_ATTN_EXT", f"{name}/{name}")} <= asked
    assert {("FLASH_ATTN_EXT", "q8_0/tq3_0"), ("FLASH_ATTN_EXT", "f16/tq3_0")} <= asked
    patterns = {job.of: job.pattern for job in jobs if job.op == "FLASH_ATTN_EXT"}
    assert re.search(patterns["tq3_0/tq3_0"], CASE)
    assert not re.search(patterns["tq3_0/tq3_0"], CASE.replace("hsk=64", "hsk=96"))
    assert not re.search(patterns["q8_0/tq3_0"], CASE)
    whole = {job.of: job.pattern for job in backend_ops.plan(()) if job.op == "FLASH_ATTN_EXT"}
    assert re.search(whole["tq3_0/tq3_0"], CASE.replace("hsk=64", "hsk=96"))
    assert not re.search(whole["q4_0/q4_0"], CASE.replace("tq3_0", "q4_0").replace("hsk=64", "hsk=96"))


def test_errors_of_the_hosts_own_cases() -> None:
    text = (
        "ok   vec q4_0/q4_0 dk 128 dv 128 kv 1024, no mask          nmse 3.00e-07 (limit 5e-04)   0.01 s \n"
        "FAIL matrix q4_0/q4_0 dk 128, nan                           nmse 1.00e-03 (limit 5e-04)   0.01 s bad\n"
        "2 cases, 1 failed\n"
    )
    found = backend_ops.parse_direct(text)
    assert (found.passed, found.failed, found.worst) == (1, 1, 1e-3)
    assert found.mean == pytest.approx(5.0015e-4)
    assert backend_ops.parse_direct("").worst is None


def test_the_gpu_family_is_part_of_the_name() -> None:
    assert device.emulator_title({}) == "Metal emulator"
    assert device.emulator_title({"METAL_EMULATOR_FAMILY": "8"}) == "Metal emulator, GPU family 8"


def test_a_fault_is_named_with_its_place() -> None:
    known = {"severity": "known", "kind": "read-write-race", "kernel": "k", "places": []}
    place = {"file": "fa_tq3_0.metal", "line": 7, "text": "x"}
    new = {"severity": "error", "kind": "divergence", "kernel": "k", "places": [place]}
    assert emulator_report.faults({"findings": [known]}) == ""
    assert emulator_report.faults({"findings": [known, new, new]}) == "divergence in k at fa_tq3_0.metal:7 and 1 more"
    assert emulator_report.faults({}) == ""
    assert emulator_report.faults({"findings": [known, new, new]}, known=1) == "divergence in k at fa_tq3_0.metal:7"
    assert emulator_report.faults({"findings": [known, new, new]}, known=2) == ""
