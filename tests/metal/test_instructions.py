"""The price of unpacking: instructions per stored value in the vec kernel, beside q4_0 and a naive variant of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from emulator_tools import Emulator, Tree
from instructions import NAIVE, NAIVE_ONLY, of_kernel, parse, per_value, portable, stripped
from mutants import mutant

FILE = """version: 1
events: Ir

ob=(1) /x/libkernels-fast-fa_tq3_0.so
fl=(1) /x/fa_vec_common.metal
fn=(1) kernel_flash_attn_ext_vec_tq3_0
10 100
+1 20
cob=(2) /x/libmetal-emulator-runtime.so
cfn=(2) metal_emulator_collective
calls=5 0
10 4000
fi=(2) /x/dequantize.h
12 30
fn=(3) kernel_x::{lambda(void**, unsigned int)#1}::__invoke(void**, unsigned int)
1 7000
ob=(2)
fn=(2)
3 900
ob=(1)
fn=(4) kernel_flash_attn_ext_vec_reduce
3 60
"""


def test_the_kernels_own_instructions_are_counted() -> None:
    cost = parse(FILE)
    assert cost["/x/libkernels-fast-fa_tq3_0.so", "kernel_flash_attn_ext_vec_tq3_0"] == 150
    assert cost["/x/libmetal-emulator-runtime.so", "metal_emulator_collective"] == 900
    assert of_kernel(cost) == 150
    assert of_kernel(Counter()) == 0


@pytest.mark.slow
def test_a_value_of_ours_costs_little_more_than_one_of_q4_0(
    emulator: Emulator, tree: Tree, compiler: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if not tree.has_type("tq3_0"):
        pytest.skip("this tree has no type tq3_0")
    pairs = ("q4_0/q4_0", "tq3_0/tq3_0", "q8_0/tq3_0")
    libraries = portable(tree)
    plain = stripped(emulator, tmp_path / "plain")
    found = {pair: per_value(plain, libraries, pair, tmp_path) for pair in pairs}
    (tmp_path / "naive").mkdir()
    naive = mutant(emulator, compiler, NAIVE[0], tmp_path / "naive", also=NAIVE[1:], variant="fast", only=NAIVE_ONLY)
    found["naive"] = per_value(stripped(naive, tmp_path / "naive-stripped"), libraries, "tq3_0/tq3_0", tmp_path)
    for name, value in found.items():
        record_property(name, round(value, 2))
        print(f"{name}: {value:.2f} instructions per KV value")  # noqa: T201 - with -s, or in the report
    assert found["tq3_0/tq3_0"] <= 1.3 * found["q4_0/q4_0"], found
    assert found["naive"] > 3 * found["tq3_0/tq3_0"], found
