"""What the Metal emulator reports between two traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from sessions import session

from tqforge.adapters.llama.api.measure import WriteEmulatorReport
from tqforge.adapters.llama.api.messages import Done
from tqforge.adapters.llama.client import Child
from tqforge.core import emulator
from tqforge.errors import LoadError
from tqforge.verify.device import Device
from tqforge.verify.stages.device.trace import TracedModel


class FakeChild:
    """Writes the next report to the file that the environment of a real child would name."""

    def __init__(self, path: Path, *reports: dict[str, Any]) -> None:
        self.path, self.reports = path, list(reports)

    def ask(self, request: WriteEmulatorReport, **_more: object) -> Done:
        if self.reports:
            self.path.write_text(json.dumps(self.reports.pop(0)))
        return Done()


def traced(tmp_path: Path, *reports: dict[str, Any]) -> TracedModel:
    child = FakeChild(tmp_path / "metal-emulator.json", *reports)
    return TracedModel(session(tmp_path), cast("Child", child), Device(title=emulator.TITLE, folder=tmp_path))


def test_dispatches_and_errors_are_those_since_the_last_question(tmp_path: Path) -> None:
    known = {"severity": "error", "kind": "divergence", "kernel": "k"}
    new = {"severity": "error", "kind": "race", "kernel": "k"}
    model = traced(
        tmp_path,
        {"dispatches": {"a": 2, "b": 1}, "findings": [known]},
        {"dispatches": {"a": 5, "b": 1}, "findings": [known, new]},
        {"dispatches": {"a": 5, "b": 1}, "findings": [known, new]},
    )
    assert model._dispatched() == ({"a": 2, "b": 1}, "divergence in k")
    assert model._dispatched() == ({"a": 3}, "race in k")
    assert model._dispatched() == ({}, "")


def test_a_missing_report_is_an_error_and_no_old_one_is_read(tmp_path: Path) -> None:
    model = traced(tmp_path, {"dispatches": {"a": 2}, "findings": []})
    assert model._dispatched()[0] == {"a": 2}
    with pytest.raises(LoadError, match="wrote no report"):
        model._dispatched()


def test_nothing_is_asked_of_the_cpu(tmp_path: Path) -> None:
    model = TracedModel(session(tmp_path), cast("Child", FakeChild(tmp_path / "r")), None)
    assert model._dispatched() == (None, "")
