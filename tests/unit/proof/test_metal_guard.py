"""What of the Metal emulator is built for a guard."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tqforge.build.metal_emulator import Builder
from tqforge.core.values import Tool, Tools
from tqforge.proof.metal_guard import MetalEmulator, recipe
from tqforge.series.trailers import Guard

CPY = Guard.parse("metal-emulator ops -o CPY -p tq3_0")
ATTENTION = Guard.parse("metal-emulator ops -o FLASH_ATTN_EXT -p hsk=64,hsv=64,nh=2,.*type_K=tq3_0")


def test_rows_need_one_source() -> None:
    assert recipe(CPY).sources == ("quantize",)
    assert recipe(CPY).targets == ("metal-emulator-check",)
    assert re.search(recipe(CPY).only["check"], "kernel_cpy_f32_tq3_0")
    assert not re.search(recipe(CPY).only["check"], "kernel_cpy_f32_q8_0")
    assert recipe(Guard.parse("metal-emulator ops -o SET_ROWS -p type_dst=tq3_0")).only["check"] == ""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("kernel_flash_attn_ext_vec_tq3_0_dk64_dv64", True),
        ("kernel_flash_attn_ext_vec_q8_0_dk64_dv64_q1_ne2", True),
        ("kernel_flash_attn_ext_f16_dk64_dv64", True),
        ("kernel_flash_attn_ext_f16_dk64_dv640", False),
        ("kernel_flash_attn_ext_f16_dk128_dv128", False),
        ("kernel_flash_attn_ext_kv_tq3_0_f16", True),
        ("kernel_flash_attn_ext_pad", True),
        ("kernel_flash_attn_ext_vec_reduce", True),
    ],
)
def test_attention_of_one_head_size(name: str, wanted: bool) -> None:
    assert bool(re.search(recipe(ATTENTION).only["check"], f'"{name}"')) is wanted


def test_without_sizes_every_head_size_and_another_operation_everything() -> None:
    every = recipe(Guard.parse("metal-emulator ops -o FLASH_ATTN_EXT -p tq3_0"))
    assert re.search(every.only["check"], "kernel_flash_attn_ext_f16_dk128_dv128")
    everything = recipe(Guard.parse("metal-emulator ops -o MUL_MAT"))
    assert (everything.sources, everything.only["check"]) == ((), "")


def test_the_version_of_the_emulator_follows_its_sources(tmp_path: Path) -> None:
    tool = Tool(name="x", path=Path("x"), version="1")
    emulator = MetalEmulator(
        builder=Builder(
            project=tmp_path,
            folder=tmp_path / "build",
            tools=Tools(cmake=tool, ninja=tool, cc=tool, cxx=tool),
            jobs=1,
            environment={},
        )
    )
    (tmp_path / "CMakeLists.txt").write_text("\n")
    (tmp_path / "a.cpp").write_text("int a;\n")
    first = emulator.version
    (tmp_path / "README.md").write_text("words\n")
    assert replace(emulator).version == first
    (tmp_path / "a.cpp").write_text("int b;\n")
    assert replace(emulator).version != first
    (tmp_path / "CMakeLists.txt").unlink()
    assert "no Metal emulator" in emulator.why_not(CPY)
