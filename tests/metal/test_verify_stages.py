"""Run the stages placement, device and ops of `tqforge verify` on the real Metal emulator, with and without faults."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import tinymodel
from emulator_tools import Emulator, Tree
from mutants import Change, mutant

from tqforge.adapters import gguf_io
from tqforge.adapters.console import Output
from tqforge.core import emulator as names
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.provenance import BuildProvenance
from tqforge.verify import device, settings
from tqforge.verify.device import Device
from tqforge.verify.registry import BY_NAME
from tqforge.verify.run import judged
from tqforge.verify.session import Session, Target
from tqforge.verify.stages import placement
from tqforge.verify.stages.device import stage as device_stage
from tqforge.verify.stages.device import trace
from tqforge.verify.stages.ops import backend_ops
from tqforge.verify.stages.ops import stage as ops
from tqforge.verify.stages.ops.backend_ops import Job

KEYS = BuildProvenance(
    base="b", commit="", tree="", series_sha256="", preset="", flags=(), compiler="", stamp="", version=""
)
#: Attention with heads of 64 values refused for the type, as if it had no kernel: the scheduler gives it to the CPU.
FALL_BACK = Change(
    "ggml-metal-device.m",
    "op->src[2]->type == GGML_TYPE_TQ3_0 && !ggml_metal_op_flash_attn_ext_has_head(",
    "op->src[2]->type == GGML_TYPE_TQ3_0 && ggml_metal_op_flash_attn_ext_has_head(",
)
WRONG_READ = Change("kernels/dequantize.h", "v = i & n ? u - v : v + u;", "v = i & n ? v - u : v + u;", ("fa_tq3_0",))
WRONG_WRITE = Change("kernels/quantize.h", "4 + n : 3 - n) << 3*j", "4 + n : 3 - n) << 2*j", ("quantize",))


@dataclass(frozen=True)
class Program:
    """A build that has one test program, already there."""

    path: Path

    def program(self, name: str) -> Path:
        assert name == self.path.name
        return self.path


@pytest.fixture(scope="session")
def bindings(request: pytest.FixtureRequest, named_tree: Tree | None) -> Path:
    if named := os.environ.get("TQFORGE_TEST_BINDINGS"):
        return Path(named)
    if named_tree is not None:
        pytest.skip("TQFORGE_TEST_BINDINGS does not name the bindings of the tree")
    return Path(request.getfixturevalue("built")[0].workspace.bindings("upstream"))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tinymodel.write(tmp_path_factory.mktemp("model") / "tiny-f16.gguf")


@pytest.fixture
def session(
    tree: Tree, bindings: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Emulator], Session]:
    if not tree.has_type("tq3_0"):
        pytest.skip("this tree has no type tq3_0")
    monkeypatch.setattr(trace, "f16_copy", lambda _: model)

    def on(emulator: Emulator, shop: Any = None) -> Session:
        monkeypatch.setattr(device, "find", lambda _: Device(title=names.TITLE, folder=emulator.folder))
        chosen = replace(settings.QUICK, pairs=(), threads=1)
        target = Target(library=tree.libraries, bindings=bindings, provenance=KEYS, gpu=False, programs=shop)
        folder = tmp_path / "out"
        folder.mkdir(exist_ok=True)
        facts = gguf_io.read(model)
        return Session(out=Output(quiet=True), target=target, settings=chosen, facts=facts, folder=folder)

    return on


def test_every_cache_write_and_attention_is_on_the_device(
    session: Callable[[Emulator], Session], emulator: Emulator
) -> None:
    stage = judged(BY_NAME["placement"], placement.run(session(emulator)))
    assert stage.status is StageStatus.PASSED, stage
    *pairs, control = stage.checks
    assert [check.name for check in pairs] == ["f16/f16", "tq3_0/tq3_0", "q8_0/tq3_0", "f16/tq3_0"]
    assert all(f"{2 * tinymodel.LAYERS} SET_ROWS and {tinymodel.LAYERS} FLASH" in check.observed for check in pairs)
    assert control.observed.startswith("FLASH_ATTN on CPU (2,")


def test_a_planted_fall_back_is_noticed(
    session: Callable[[Emulator], Session], emulator: Emulator, compiler: str, tmp_path: Path
) -> None:
    (tmp_path / "mutant").mkdir()
    stage = judged(
        BY_NAME["placement"], placement.run(session(mutant(emulator, compiler, FALL_BACK, tmp_path / "mutant")))
    )
    assert stage.status is StageStatus.FAILED
    fallen = {check.name: check.observed for check in stage.checks if check.status is StageStatus.FAILED}
    assert fallen.keys() == {"tq3_0/tq3_0", "q8_0/tq3_0", "f16/tq3_0"}
    assert all(observed.startswith("FLASH_ATTN on CPU") for observed in fallen.values()), fallen


def test_a_whole_model_agrees_with_the_cpu(session: Callable[[Emulator], Session], emulator: Emulator) -> None:
    stage = judged(BY_NAME["device"], device_stage.run(session(emulator)))
    assert stage.status is StageStatus.PASSED, stage
    assert [str(row.pair) for row in stage.rows] == ["f16/f16", "tq3_0/tq3_0", "q8_0/tq3_0", "f16/tq3_0"]
    tokens = sum(device_stage.BATCHES) + device_stage.GREEDY - 1
    for row in stage.rows:
        assert (row.tokens, row.strays) == (tokens, ())
        # one write of K and one of V per layer and batch, single tokens among them
        batches = len(device_stage.BATCHES) + device_stage.GREEDY - 1
        assert row.writes == 2 * tinymodel.LAYERS * batches
        assert row.attention is not None
        assert row.attention >= tinymodel.LAYERS * batches
        assert row.kl_same is not None
        assert 0 < row.kl_same.value < 1e-4
        assert row.error_device == pytest.approx(row.error_cpu, rel=0.01, abs=1e-6)
    errors = [row.error_cpu or 0.0 for row in stage.rows]
    assert errors[0] < 1e-6
    assert errors[1] > errors[2] > 1e-3, "K and V of 3 bits, then V alone"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (WRONG_WRITE, "rows it wrote is"),
        (WRONG_READ, "on the same rows is above"),
        (FALL_BACK, "left the device: FLASH_ATTN on CPU"),
    ],
)
def test_a_planted_fault_is_seen_in_the_whole_model(
    session: Callable[[Emulator], Session], emulator: Emulator, compiler: str, tmp_path: Path, change: Change, word: str
) -> None:
    (tmp_path / "mutant").mkdir()
    changed = mutant(
        emulator, compiler, change, tmp_path / "mutant", variant="fast", only="dk64_dv64|set_rows|get_rows|cpy"
    )
    stage = judged(BY_NAME["device"], device_stage.run(session(changed)))
    assert stage.status is StageStatus.FAILED
    assert word in stage.reason, stage.reason
    assert "f16/f16" not in stage.reason


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [
        Job("GET_ROWS", "tq3_0", "type=tq3_0,"),
        Job("FLASH_ATTN_EXT", "tq3_0/tq3_0", r"hsk=64,hsv=64,nh=2,nr23=\[2,1\],.*type_K=tq3_0,type_V=tq3_0,"),
    ]
    monkeypatch.setattr(backend_ops, "plan", lambda _: jobs)
    monkeypatch.setattr(backend_ops, "PAIRS", backend_ops.PAIRS[:1])


def test_single_ops(session: Any, emulator: Emulator, program: Callable[[str], Path], few: None) -> None:
    stage = judged(BY_NAME["ops"], ops.run(session(emulator, Program(program(backend_ops.PROGRAM)))))
    assert stage.status is StageStatus.PASSED, stage
    cpu, there, own = stage.rows[:2], stage.rows[2:4], stage.rows[4:]
    assert [row.backend for row in cpu] == ["CPU", "CPU"]
    assert all(row.dispatches is None for row in cpu)
    assert all((row.dispatches or 0) >= row.passed > 0 for row in there)
    assert [row.passed for row in cpu] == [row.passed for row in there]
    assert own[0].worst_nmse is not None
    assert 0 < own[0].worst_nmse < 5e-4


def test_a_fault_in_single_ops(
    session: Any, emulator: Emulator, program: Callable[[str], Path], few: None, compiler: str, tmp_path: Path
) -> None:
    (tmp_path / "mutant").mkdir()
    wrong = Change("kernels/dequantize.h", "v[i + n] = a - b;", "v[i + n] = b - a;", ("quantize",))
    changed = mutant(emulator, compiler, wrong, tmp_path / "mutant", variant="fast", only="set_rows|get_rows|cpy")
    stage = judged(BY_NAME["ops"], ops.run(session(changed, Program(program(backend_ops.PROGRAM)))))
    assert stage.status is StageStatus.FAILED
    assert "Metal emulator, GET_ROWS tq3_0" in stage.reason


def test_a_refused_op_is_no_pass(
    session: Any, emulator: Emulator, program: Callable[[str], Path], few: None, compiler: str, tmp_path: Path
) -> None:
    (tmp_path / "mutant").mkdir()
    changed = mutant(emulator, compiler, FALL_BACK, tmp_path / "mutant")
    stage = judged(BY_NAME["ops"], ops.run(session(changed, Program(program(backend_ops.PROGRAM)))))
    assert stage.status is StageStatus.FAILED
    row = next(r for r in stage.rows if r.backend == "Metal emulator" and r.op.startswith("FLASH"))
    assert (row.passed, row.dispatches) == (0, 0)
    assert row.unsupported > 0
    assert "nothing was dispatched" in row.note
