"""What the executor finds in kernels with one planted fault each (metal/harness/faults.metal), and the controls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from emulator_tools import METAL, Emulator, Report

SOURCE = (METAL / "harness/faults.metal").read_text(encoding="utf-8").splitlines()
ORDERS = ["reverse", "forward", "shuffle:1", "shuffle:2", "wild:1"]

FAULTS = {
    "race_read": "read-write-race",
    "race_across_simdgroups": "read-write-race",
    "race_write_after_read_0": "read-write-race",
    "race_write_after_read_1": "read-write-race",
    "race_behind_mem_none": "read-write-race",
    "race_write": "write-write-race",
    "race_in_kernel_variable": "read-write-race",
    "uninitialized": "uninitialized-read",
    "uninitialized_kernel_variable": "uninitialized-read",
    "beyond_threadgroup_memory": "threadgroup-out-of-bounds",
    "beyond_kernel_variable": "threadgroup-out-of-bounds",
    "beyond_input": "device-out-of-bounds",
    "beyond_output": "device-out-of-bounds",
    "barrier_in_branch": "divergence",
    "barrier_after_return": "divergence",
    "two_barriers": "divergence",
    "lanes_apart": "divergence",
    "matrix_pointer_not_uniform": "simdgroup",
    "shuffle_from_a_returned_lane": "simdgroup",
}


def run(emulator: Emulator, kernel: str, order: str = "reverse") -> Report:
    return emulator.run([emulator.folder / "metal-emulator-faults", kernel], order=order)


def body(kernel: str) -> range:
    """Return the line range of a kernel in faults.metal."""
    first = next(i for i, line in enumerate(SOURCE, 1) if re.search(rf"kernel void {kernel}\(", line))
    return range(first, next(i for i, line in enumerate(SOURCE, 1) if i > first and line == "}") + 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", sorted(FAULTS))
def test_a_fault_is_named_with_its_line(emulator: Emulator, kernel: str, order: str) -> None:
    report = run(emulator, kernel, order)
    assert report.code == 3, report.describe()
    found = [f for f in report.findings() if f["kind"] == FAULTS[kernel]]
    assert found, report.describe()
    assert all(f["kernel"] == kernel for f in found)
    places = [p for f in found for p in f["places"]]
    assert any(p["file"] == "faults.metal" and p["line"] in body(kernel) for p in places), report.describe()


@pytest.mark.parametrize("order", ORDERS)
def test_a_kernel_without_fault_computes_and_nothing_is_found(emulator: Emulator, order: str) -> None:
    report = run(emulator, "good", order)
    assert (report.code, report.findings(), report.dispatches) == (0, [], {"good": 1}), report.describe()
    mine = [i * (1.0, 2.0, 3.0, 4.0)[i % 4] for i in range(64)]
    expected = [mine[63 - (i ^ 1)] + sum(range(32)) + ((i % 32) ^ 1) + i // 32 for i in range(64)]
    assert [float(x) for x in report.output.split()] == expected


@pytest.mark.parametrize("order", ORDERS)
def test_a_write_behind_the_reads_of_its_own_simd_group_is_no_race(emulator: Emulator, order: str) -> None:
    report = run(emulator, "written_after_the_own_simdgroup_read", order)
    assert (report.code, report.findings()) == (0, []), report.describe()
    assert [float(x) for x in report.output.split()] == [32 + i // 32 * 32 + i % 32 for i in range(64)]


@pytest.mark.parametrize("order", ORDERS)
def test_equal_values_written_by_all_threads_are_no_race(emulator: Emulator, order: str) -> None:
    report = run(emulator, "same_value_written_by_all", order)
    assert (report.code, report.findings()) == (0, []), report.describe()


KNOWN = """id: known
kind: read-write-race
file: faults.metal
text: if (tid == 0) shared[0] = 1.0f;
"""


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("", 0),
        ("against: const float x = shared[0];\n", 0),
        ("against: shared[tid] = in[tid];\nagainst: const float x = shared[0];\n", 0),
        ("against: shared[tid] = in[tid];\n", 3),
        ("kernel: other\nkernel: race_write_after_read_?\n", 0),
        ("kernel: race_write\n", 3),
    ],
)
def test_a_race_is_known_by_both_lines_and_its_kernel(emulator: Emulator, tmp_path: Path, more: str, code: int) -> None:
    (tmp_path / "known.txt").write_text(KNOWN + more, encoding="utf-8")
    kernel = emulator.folder / "metal-emulator-faults", "race_write_after_read_0"
    report = emulator.run(kernel, order="reverse", suppressions=str(tmp_path / "known.txt"))
    assert (report.code, report.known()) == (code, set() if code else {"known"}), report.describe()


def test_every_kernel_of_the_file_is_judged() -> None:
    kernels = set(re.findall(r"^kernel void (\w+)\(", "\n".join(SOURCE), re.M))
    assert kernels == {*FAULTS, "good", "same_value_written_by_all", "written_after_the_own_simdgroup_read"}


def test_a_process_without_a_dispatch_fails_when_one_is_expected(emulator: Emulator) -> None:
    report = emulator.run([emulator.folder / "metal-emulator-faults"], expect_dispatches="1")
    assert report.code == 3
    assert "nothing ran here" in report.output


def test_an_unknown_order_is_refused(emulator: Emulator) -> None:
    report = run(emulator, "good", "sideways")
    assert report.code == 2
    assert "reverse, forward, shuffle:SEED, wild:SEED" in report.output
