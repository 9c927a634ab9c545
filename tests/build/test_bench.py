"""`tqforge bench` on a real library: filled caches that are kept, and a build beside its own copy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from native_library import Native

from tqforge.adapters.console import Output
from tqforge.adapters.llama.api.measure import FillBench, OpenBench, RunBench
from tqforge.adapters.llama.api.model import CheckOrigin, ContextSpec, LoadModel
from tqforge.adapters.llama.client import Child
from tqforge.commands import verify
from tqforge.context import Context
from tqforge.core.pair import Pair
from tqforge.errors import LoadError
from tqforge.verify import settings
from tqforge.verify.request import Request
from tqforge.workspace import Workspace

TEXT = [3 + i % 900 for i in range(96)]
SMALL = replace(
    settings.QUICK, stages=("speed",), pairs=(Pair("tq3_0", "tq3_0"),), speed_depths=(0, 64), speed_prefill=32,
    speed_decode=2, speed_rounds=2, threads=1,
)  # fmt: skip


@pytest.fixture
def bench(native: Native, tmp_path: Path) -> Iterator[Child]:
    """A child with two contexts of one pair open."""
    with Child(library=native.library, bindings=native.bindings, log=tmp_path / "llama.log") as running:
        running.ask(LoadModel(path=native.model, gpu_layers=0), timeout=120)
        context = ContextSpec(k="q8_0", v="tq3_0", n_ctx=256, threads=1)
        running.ask(OpenBench(contexts=(context, context), threads=1), timeout=120)
        yield running


def fill(child: Child, index: int, tokens: list[int], state: Path | None) -> bool:
    return child.ask(FillBench(index=index, tokens=tuple(tokens), state=state), timeout=120).read


def seconds(child: Child, index: int, tokens: list[int]) -> float:
    request = RunBench(index=index, keep=64, tokens=tuple(tokens), single=True)
    return child.ask(request, timeout=60).seconds


def test_a_filled_cache_is_kept_and_read_by_another_context(bench: Child, tmp_path: Path) -> None:
    state = tmp_path / "a.state"
    assert not fill(bench, 0, TEXT[:64], state)
    assert fill(bench, 1, TEXT[:64], state)
    assert seconds(bench, 1, TEXT[64:70]) > 0
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_a_broken_or_foreign_cache_is_not_trusted(bench: Child, tmp_path: Path) -> None:
    state = tmp_path / "a.state"
    fill(bench, 0, TEXT[:64], state)
    shutil.copy(state, tmp_path / "whole")
    assert not fill(bench, 1, TEXT[1:65], state)  # the same number of other tokens
    broken = tmp_path / "b.state"
    broken.write_bytes((tmp_path / "whole").read_bytes()[:2000])
    assert not fill(bench, 1, TEXT[:64], broken)
    assert fill(bench, 0, TEXT[:64], broken)  # written anew


def test_a_cache_grows_from_what_it_holds(bench: Child) -> None:
    assert not fill(bench, 0, TEXT[:32], None)
    assert not fill(bench, 0, TEXT[:64], None)
    assert seconds(bench, 0, TEXT[64:66]) > 0


def run(native: Native, tmp_path: Path, second_build: Path) -> dict[str, Any]:
    request = Request(
        models=(str(native.model),), library=native.library, bindings=native.bindings, out=tmp_path / "out",
        compare_with=second_build,
    )  # fmt: skip
    verify.run(Context(workspace=Workspace(tmp_path / "ws"), out=Output(quiet=True)), SMALL, request)
    report: dict[str, Any] = json.loads((tmp_path / "out/report.json").read_text())
    (stage,) = report["stages"]
    return dict(stage)


def copy_of(native: Native, folder: Path, pattern: str) -> Path:
    folder.mkdir()
    for path in native.library.glob(pattern):
        shutil.copy(path, folder / path.name, follow_symlinks=False)
    return folder


def test_a_build_beside_a_copy_of_itself(native: Native, tmp_path: Path) -> None:
    stage = run(native, tmp_path, copy_of(native, tmp_path / "twin", "lib*"))
    assert stage["compared_with"] == str(tmp_path / "twin")
    assert {row["pair"] for row in stage["compared"]} == {"f16/f16", "tq3_0/tq3_0"}
    twin = [one for one in stage["ratios"] if (one["against"], one["build"]) == ("tq3_0/tq3_0", "twin")]
    assert {(one["phase"], one["depth"]) for one in twin} == {
        (phase, depth) for phase in ("prefill", "decode", "end-to-end") for depth in (0, 64)
    }
    assert not list((tmp_path / "out").glob("snapshots-*"))


def test_a_library_that_brings_parts_of_another_build_is_refused(native: Native, tmp_path: Path) -> None:
    """libllama alone takes its ggml from where it was built."""
    lone = copy_of(native, tmp_path / "lone", "libllama.*")
    with pytest.raises(LoadError):
        with Child(library=lone, bindings=native.bindings, log=tmp_path / "log") as child:
            child.ask(CheckOrigin(folder=lone), timeout=60)
