from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic_report import crash_in_the_middle, report

from tqforge.adapters.console import Output
from tqforge.commands import report as command
from tqforge.context import Context
from tqforge.errors import ConfigError, UsageError
from tqforge.report.schema import store
from tqforge.report.schema.report import Report
from tqforge.workspace import Workspace


def record(folder: Path, whole: Report) -> Path:
    folder.mkdir(parents=True)
    path = folder / "report.json"
    path.write_text(json.dumps(whole.to_json()), encoding="utf-8")
    return path


def context(root: Path, *, json_mode: bool = False) -> Context:
    return Context(workspace=Workspace(root), out=Output(json_mode=json_mode, quiet=True))


def test_the_newest_run_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "runs" / "2026-01-01T00-00-00", crash_in_the_middle())
    record(tmp_path / "runs" / "2026-01-02T00-00-00", report())
    assert command.run(context(tmp_path), page=tmp_path / "page.html") == 0
    assert "Losses measured." in capsys.readouterr().out
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_named_run_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(tmp_path / "run", crash_in_the_middle())
    assert command.run(context(tmp_path, json_mode=True), path.parent) == 0
    assert Report.model_validate_json(capsys.readouterr().out) == crash_in_the_middle()


def test_no_run_yet(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No run is recorded"):
        store.newest(tmp_path / "runs")


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", '{"schema_version": 2}'])
def test_what_is_no_report_is_refused_with_a_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="not a valid report") as caught:
        store.load(path)
    assert caught.value.remedy


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        store.load(tmp_path / "nothing.json")


@pytest.mark.parametrize("version", [0, 1, 3])
def test_another_schema_version_is_refused_by_its_number(tmp_path: Path, version: int) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({**report().to_json(), "schema_version": version}), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"has schema version {version}; this tqforge reads version 2") as caught:
        store.load(path)
    assert "with the version that wrote it" in caught.value.remedy
