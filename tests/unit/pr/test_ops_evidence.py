"""Which rows of stage ops count as evidence for a pull request."""

from __future__ import annotations

import pytest
from synthetic_report import report

from tqforge.pr import evidence
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.rows import OpsRow
from tqforge.report.schema.stages import OpsStage

CPU = OpsRow(backend="CPU", op="CPY tq3_0", passed=20, failed=0, unsupported=0)
EMULATOR = OpsRow(backend="Metal emulator", op="CPY tq3_0", passed=7, failed=0, unsupported=13, dispatches=7)
METAL = OpsRow(backend="Metal", op="CPY tq3_0", passed=7, failed=0, unsupported=13)
OWN = OpsRow(
    backend="Metal emulator, watched", op="x", passed=9, failed=0, unsupported=0, worst_nmse=1e-7, dispatches=9
)


@pytest.mark.parametrize(
    ("rows", "met", "word"),
    [
        ((CPU, EMULATOR, OWN), False, "Metal kernels ran only on the emulator"),
        ((CPU, METAL), True, "CPU, Metal"),
        ((EMULATOR,), False, "recorded: none"),
    ],
)
def test_the_metal_emulator_is_no_second_backend(rows: tuple[OpsRow, ...], met: bool, word: str) -> None:
    whole = report(stages=(OpsStage(status=StageStatus.PASSED, rows=rows),))
    runs = evidence.Runs(reports=(("run", whole),), proofs=(), stale=(), files=())
    state = evidence.states(runs)["ops"]
    assert state.filled is met
    assert word in state.what
    assert OWN not in [row for _, row in evidence.ops(runs)]
