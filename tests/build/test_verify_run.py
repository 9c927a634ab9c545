"""`tqforge verify` on a real library: what it finds, and what it leaves behind when native code dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sliding
from native_library import Native, heed_interrupts

from tqforge.adapters import gguf_io
from tqforge.adapters.console import Output
from tqforge.adapters.llama.api.cache import ListEncoders, Score
from tqforge.adapters.llama.api.model import ContextSpec, Extend, Generate, ListDevices, Open, Tokenize
from tqforge.adapters.llama.client import Child
from tqforge.commands import verify
from tqforge.context import Context
from tqforge.core.pair import F16, Pair
from tqforge.errors import CacheTypeError, ContextLengthError, CrashError
from tqforge.verify import registry, settings
from tqforge.verify import request as requests
from tqforge.verify.registry import BY_NAME
from tqforge.verify.request import Request
from tqforge.verify.run import judged
from tqforge.verify.session import Session
from tqforge.verify.settings import N_BATCH
from tqforge.verify.stages import memory, plan
from tqforge.workspace import Workspace

TQ3 = Pair("tq3_0", "tq3_0")
SMALL = replace(
    settings.QUICK, stages=registry.choose(()), pairs=(TQ3,),
    lengths=(160,), depths=(0.5,), seeds=(0,), answer_tokens=28, memory_context=512,
    quality_prefixes=(64,), quality_scored=32, greedy_starts=2, greedy_tokens=8,
    plan_lengths=(512,), plan_context=512, codec_blocks=2000, threads=1,
)  # fmt: skip


def run(native: Native, tmp_path: Path, chosen: settings.Settings) -> tuple[int, dict[str, Any]]:
    out = tmp_path / "out"
    request = Request(models=(str(native.model),), library=native.library, bindings=native.bindings, out=out)
    ctx = Context(workspace=Workspace(tmp_path / "ws"), out=Output(quiet=True), argv=("verify",))
    code = verify.run(ctx, chosen, request)
    return code, json.loads((out / "report.json").read_text())


@pytest.fixture
def session(native: Native, tmp_path: Path) -> Any:
    request = Request(library=native.library, bindings=native.bindings)
    target = requests.target(Workspace(tmp_path), Output(quiet=True), request)
    facts = gguf_io.read(native.model)
    made = Session(out=Output(quiet=True), target=target, settings=SMALL, facts=facts, folder=tmp_path)
    yield made
    made.close()


def test_a_small_run_end_to_end(native: Native, tmp_path: Path) -> None:
    code, report = run(native, tmp_path, SMALL)
    stages = {stage["name"]: stage for stage in report["stages"]}
    assert stages["source"]["status"] == "skipped"
    assert stages["codec"]["status"] == "passed", stages["codec"]
    assert stages["memory"]["status"] == "passed", stages["memory"]
    assert [row["pair"] for row in stages["quality"]["rows"]] == ["f16/f16", "tq3_0/tq3_0"]
    floor, row = stages["quality"]["rows"]
    assert floor["is_floor"]
    assert floor["kl"]["value"] < 1e-3 < row["kl"]["value"] < 1.0
    assert row["bits"] == 3.5
    assert stages["plan"]["status"] == "passed", stages["plan"]
    for line in stages["plan"]["rows"]:
        assert line["planned"]["compute"] == line["measured"]["compute"]
    assert [one["pair"] for one in report["verdicts"]] == ["tq3_0/tq3_0"]
    assert stages["plan"]["recommendations"][0]["pair"] == "f16/f16"
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert code in (0, 1)


def test_kv_bytes_are_exact(session: Session) -> None:
    for row in memory.run(session).rows:
        assert (row.k_measured, row.v_measured) == (row.k_formula, row.v_formula)
        assert row.buffers == row.k_measured + row.v_measured
    assert row.k_measured * 32 == row.k_values * 14


def test_layers_with_a_sliding_window_are_planned_apart_and_measured_so(session: Session, tmp_path: Path) -> None:
    """Two of four layers keep window + batch cells, whatever the context; planned and allocated agree."""
    session.facts = gguf_io.read(sliding.write(tmp_path / "sliding.gguf"))
    session.settings = replace(SMALL, plan_lengths=(2048,), plan_context=8192)
    stage = judged(BY_NAME["plan"], plan.run(session))
    assert stage.status == "passed", stage.reason
    rows = {(row.pair, row.n_ctx): row for row in stage.rows}
    for (pair, n_ctx), row in rows.items():
        assert row.measured is not None
        assert row.measured.kv_swa == pytest.approx(row.planned.kv_swa, abs=0.01 * (1 << 20))
        per_cell = {F16: 2 * 16, TQ3: 2 * 3.5}[pair] / 8 * sliding.KV_HEADS * sliding.HEAD
        assert row.planned.kv == 2 * n_ctx * per_cell
        assert row.planned.kv_swa == 2 * (sliding.WINDOW + N_BATCH) * per_cell


@pytest.mark.parametrize("kind", ["f16", "tq3_0"])
def test_nothing_of_an_earlier_question_is_left(child: Child, kind: str) -> None:
    """The answer after a shared prefix is the same whether or not another question was asked before it."""
    texts = (
        "The keeper of the canal writes a line for every boat that passes, with the hour and the level.",
        " Upstream the water is higher. What does the keeper write?",
        " The bell is cast of bronze. Of what",
    )
    trunk, other, asked = child.ask(Tokenize(texts=texts), timeout=60).tokens

    def answer(*branches: tuple[int, ...]) -> tuple[int, ...]:
        child.ask(Open(spec=ContextSpec(k=kind, v=kind, n_ctx=256, threads=1)), timeout=60)
        child.ask(Extend(keep=0, tokens=trunk), timeout=60)
        for branch in branches:
            child.ask(Extend(keep=len(trunk), tokens=branch), timeout=60)
            made = child.ask(Generate(limit=12), timeout=60)
        return made.tokens

    assert answer(other, asked) == answer(asked)
    with pytest.raises(ContextLengthError):
        child.ask(Extend(keep=200, tokens=asked), timeout=60)


def test_a_null_context_is_an_error_with_the_reason(child: Child) -> None:
    with pytest.raises(CacheTypeError, match="could not create a context") as caught:
        child.ask(Open(spec=ContextSpec(k="f16", v="q4_0", n_ctx=256, flash_attention=False)), timeout=60)
    assert "flash_attn" in caught.value.where


def test_an_unknown_type_is_refused_by_name(child: Child) -> None:
    with pytest.raises(CacheTypeError, match="no type 'tq9_9'"):
        child.ask(Open(spec=ContextSpec(k="tq9_9", v="f16", n_ctx=256)), timeout=60)


@pytest.mark.parametrize("sign", [signal.SIGSEGV, signal.SIGILL, signal.SIGKILL])
def test_a_dead_child_is_named_and_stays_dead(native: Native, tmp_path: Path, sign: signal.Signals) -> None:
    with Child(library=native.library, bindings=native.bindings, log=tmp_path / "log") as running:
        running.stage = "needle"
        os.kill(running.pid, sign)
        for _ in range(2):
            with pytest.raises(CrashError, match=f"died of {sign.name} in stage needle") as caught:
                running.ask(ListDevices(), timeout=60)
            assert caught.value.signal == sign.name


def test_a_child_that_hangs_is_ended(native: Native, tmp_path: Path) -> None:
    with Child(library=native.library, bindings=native.bindings, log=tmp_path / "log") as running:
        os.kill(running.pid, signal.SIGSTOP)
        with pytest.raises(CrashError, match="did not answer within 1 s"):
            running.ask(ListEncoders(type="tq3_0"), timeout=1)
        assert not running.alive


def test_sigsegv_in_the_middle_leaves_a_whole_report(
    native: Native, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Child.ask

    def ask(self: Child, request: Any, **words: Any) -> Any:
        if self.stage == "needle" and isinstance(request, Extend):
            os.kill(self.pid, signal.SIGSEGV)
        return original(self, request, **words)

    monkeypatch.setattr(Child, "ask", ask)
    code, report = run(native, tmp_path, replace(SMALL, stages=("needle", "quality")))
    stages = {stage["name"]: stage for stage in report["stages"]}
    assert code == 23
    assert "SIGSEGV in stage needle" in stages["needle"]["reason"]
    assert stages["needle"]["error"]["kind"] == "CrashError"
    assert stages["quality"]["status"] == "passed"


def test_a_library_without_the_type(native: Native, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy whose type has another name: found by name, so it is not found."""
    if sys.platform != "linux":
        pytest.skip("the copy is loaded through LD_LIBRARY_PATH")
    stock = tmp_path / "stock"
    shutil.copytree(native.library, stock, ignore=lambda _, names: [n for n in names if ".so" not in n], symlinks=False)
    for path in stock.glob("libggml-base.so*"):
        path.write_bytes(path.read_bytes().replace(b"\0tq3_0\0", b"\0tqx_x\0"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(stock))
    code, report = run(replace(native, library=stock), tmp_path, SMALL)
    assert code == 31
    reasons = {stage["name"]: stage["reason"] for stage in report["stages"]}
    assert "no type 'tq3_0'" in reasons["codec"]
    assert "'tq3_0' of pair tq3_0/tq3_0 is not in the built library" in reasons["needle"]


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_leaves_a_partial_report(native: Native, tmp_path: Path, sign: signal.Signals, code: int) -> None:
    argv = [
        sys.executable, "-m", "tqforge", "--workspace", str(tmp_path / "ws"), "verify", "--model", str(native.model),
        "--library", str(native.library), "--bindings", str(native.bindings), "--out", str(tmp_path / "out"),
        "--pairs", "tq3_0", "--stage", "codec", "--stage", "needle", "--threads", "1",
    ]  # fmt: skip
    process = subprocess.Popen(
        argv, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_interrupts
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "stage needle" in line:
                time.sleep(1)
                process.send_signal(sign)
                break
        assert process.wait(60) == code
    finally:
        process.kill()
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [stage["name"] for stage in report["stages"]] == ["codec", "needle"]
    assert report["stages"][0]["status"] == "passed"
    assert "interrupted" in report["stages"][1]["reason"]


def test_the_divergence_of_a_run_with_itself_is_nothing(child: Child, tmp_path: Path) -> None:
    text = "A bell is a tool for being heard, and its shape was found by trying."
    tokens = child.ask(Tokenize(texts=(text,)), timeout=60).tokens[0]
    saved = tmp_path / "ref.npy"
    request = Score(spec=ContextSpec(k="f16", v="f16", n_ctx=256, threads=1), tokens=tokens,
                    windows=((len(tokens) - 8, 8),), starts=(4,), limit=6, save=saved)  # fmt: skip
    first = child.ask(request, timeout=60)
    again = child.ask(request.model_copy(update={"save": None, "reference": saved, "made": first.made}), timeout=60)
    assert again.equal == (6,)
    assert np.allclose(first.nll, again.nll)
    assert all(kl is not None and kl < 1e-9 for kl in again.kl)
    assert all(again.same_top)
