from __future__ import annotations

import re
from pathlib import Path

import pytest

from tqforge.core import emulator

ROOT = Path(__file__).parents[3]
NAMED = re.compile(r"(?:clang(?:\+\+)?|llvm)[- ](\d+)")
TRIED_BEFORE = "14"  # named in the texts as too old


@pytest.mark.parametrize("name", [".ci/run", "README.md", "metal/README.md", "metal/CMakeLists.txt"])
def test_every_file_names_the_same_clang(name: str) -> None:
    found = set(NAMED.findall((ROOT / name).read_text(encoding="utf-8")))
    assert found - {TRIED_BEFORE} == {emulator.CLANG_VERSION}


def test_a_run_must_dispatch_and_reports_only_where_asked() -> None:
    env = emulator.environment(Path("/e"), "check", Path("/r.json"))
    assert env["GGML_BACKEND_PATH"] == "/e/libmetal-emulator-check.so"
    assert env["METAL_EMULATOR_EXPECT_DISPATCHES"] == "1"
    assert env["METAL_EMULATOR_REPORT"] == "/r.json"
    assert emulator.environment(Path("/e"), "check")["METAL_EMULATOR_REPORT"] is None


@pytest.mark.parametrize("name", ["QUIET", "EXPECT_DISPATCHES", "REPORT", "FAMILY"])
def test_the_emulator_reads_the_variable(name: str) -> None:
    sources = [p.read_text(encoding="utf-8") for p in (ROOT / "metal").rglob("*.cpp")]
    assert any(f'getenv("{getattr(emulator, name)}")' in text for text in sources)
