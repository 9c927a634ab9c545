"""Where Metal kernels can run, why they cannot, and when the Metal emulator is compiled again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sessions import session as made

from tqforge.adapters import toolchain
from tqforge.build import metal_emulator
from tqforge.core.values import Tool
from tqforge.verify import device
from tqforge.verify.device import Device
from tqforge.verify.session import Session, SkippedError
from tqforge.verify.stages.device import trace


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return made(tmp_path)


def clang(monkeypatch: pytest.MonkeyPatch, *, there: bool, symbolizer: bool = True) -> None:
    found = Tool(name="clang++-19", path=Path("/usr/bin/clang++-19"), version="19") if there else None
    monkeypatch.setattr(toolchain, "clang_for_metal", lambda: found)
    monkeypatch.setattr(toolchain, "symbolizer_for_metal", lambda: Path("/x") if symbolizer else None)


def test_a_metal_build_needs_nothing_else(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    clang(monkeypatch, there=False)
    session.target = replace(session.target, gpu=True)
    assert device.why_none(session, "Darwin") == ("", "")


def test_a_mac_without_a_metal_build_is_told_how(session: Session) -> None:
    reason, remedy = device.why_none(session, "Darwin")
    assert "no Metal" in reason
    assert "tqforge build --metal" in remedy


@pytest.mark.parametrize(
    ("there", "symbolizer", "word"), [(False, True, "clang++-19"), (True, False, "llvm-symbolizer"), (True, True, "")]
)
def test_what_the_emulator_needs(
    session: Session, monkeypatch: pytest.MonkeyPatch, there: bool, symbolizer: bool, word: str
) -> None:
    clang(monkeypatch, there=there, symbolizer=symbolizer)
    reason, remedy = device.why_none(session, "Linux")
    assert word in reason
    assert bool(reason) == bool(word)
    assert ("clang-19" in remedy) == bool(word)


def test_a_library_given_by_its_path_is_put_off(session: Session) -> None:
    with pytest.raises(SkippedError) as caught:
        device.find(session)
    assert "--library" in caught.value.remedy


def test_a_large_model_is_put_off_before_anything_is_made(session: Session) -> None:
    session.facts = replace(session.facts, size=8 << 30)
    with pytest.raises(SkippedError) as caught:
        trace.f16_copy(session)
    assert "8192 MiB" in caught.value.reason


def test_a_run_on_the_emulator_must_dispatch() -> None:
    env = Device(title="Metal emulator", folder=Path("/h")).environment(Path("/r.json"), "check")
    assert env["GGML_BACKEND_PATH"] == "/h/libmetal-emulator-check.so"
    assert env["METAL_EMULATOR_EXPECT_DISPATCHES"] == "1"
    assert env["METAL_EMULATOR_REPORT"] == "/r.json"
    assert Device(title="Metal").environment(Path("/r.json")) == {}


def test_the_emulator_is_compiled_again_for_a_reason_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("x")
    (tmp_path / "a.cpp").write_text("x")

    def inputs(key: str = "tree", **changes: Any) -> dict[str, str]:
        recipe = replace(metal_emulator.verification(64), **changes)
        return metal_emulator.inputs(tmp_path, recipe, key, "clang 19")

    first = inputs()
    assert metal_emulator.differences({}, first) == "it has not been built yet"
    assert metal_emulator.differences(first, inputs()) == ""
    assert metal_emulator.differences(first, inputs("other")) == "the tree or its libraries changed"
    assert "what is compiled changed" in metal_emulator.differences(first, inputs(variants=("fast",)))
    (tmp_path / "README.md").write_text("read by people")
    assert metal_emulator.differences(first, inputs()) == ""
    (tmp_path / "a.cpp").write_text("y")
    assert metal_emulator.differences(first, inputs()) == "the emulator's own sources changed"


@pytest.mark.parametrize(
    ("kernel", "fast", "check"),
    [
        ("kernel_flash_attn_ext_vec_tq3_0_dk576_dv512", True, True),
        ("kernel_flash_attn_ext_vec_q8_0_tq3_0_dk96_dv64", True, True),
        ("kernel_flash_attn_ext_q4_0_dk128_dv128", True, True),
        ("kernel_flash_attn_ext_vec_q4_0_dk96_dv96", False, False),
        ("kernel_flash_attn_ext_vec_f16_dk80_dv80", True, True),  # the head size of the model
        ("kernel_flash_attn_ext_f16_dk192_dv128", True, True),
        ("kernel_flash_attn_ext_kv_q8_0_f16", True, True),
        ("kernel_set_rows_f32_i64_tq3_0", True, True),
        ("kernel_mul_mm_f16_f32", True, False),
        ("kernel_mul_mv_ext_f16_f32_r1_2", True, False),
        ("kernel_mul_mv_q4_K_f32", False, False),
        ("kernel_rms_norm_mul_f32_4", True, False),
    ],
)
def test_which_kernels_are_compiled(kernel: str, fast: bool, check: bool) -> None:
    only = metal_emulator.verification(80).only
    assert bool(re.search(only["fast"], f'"{kernel}"')) is fast
    assert bool(re.search(only["check"], f'"{kernel}"')) is check
