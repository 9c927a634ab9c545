"""Every stage is registered once, with everything that it needs to run, to be judged and to be shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from synthetic_report import report
from typer.testing import CliRunner

from tqforge.cli.app import app
from tqforge.errors import UsageError
from tqforge.report.judge import stages as rules
from tqforge.report.render import html
from tqforge.report.render.terminal import screen
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import Stage
from tqforge.verify import registry
from tqforge.verify.registry import BY_NAME, NAMES, STAGES, StageSpec

ORDER = ("source", "codec", "ops", "placement", "device", "memory", "needle", "quality", "plan", "speed")


def test_the_stages_in_their_order() -> None:
    assert NAMES == ORDER
    assert len(set(NAMES)) == len(NAMES)
    assert tuple(BY_NAME) == NAMES


@pytest.mark.parametrize("spec", STAGES, ids=NAMES)
def test_every_stage_runs_is_judged_and_is_shown(spec: StageSpec[Any]) -> None:
    assert callable(spec.run)
    assert spec.title.endswith("?")
    assert spec.empty.status is StageStatus.INCONCLUSIVE
    verdict = spec.judge(spec.empty)
    assert verdict.status in (StageStatus.INCONCLUSIVE, StageStatus.FAILED, StageStatus.PASSED)
    assert spec.show is not rules.show.dispatch(object)
    assert list(spec.show(spec.empty, report(stages=(spec.empty,)))) == []


@pytest.mark.parametrize("spec", STAGES, ids=NAMES)
def test_every_record_comes_back_from_json_and_is_on_page_and_screen(spec: StageSpec[Any]) -> None:
    stage: Stage = spec.empty.model_copy(update={"reason": "because"})
    whole = report(stages=(stage,))
    assert Report.model_validate_json(whole.model_dump_json()).stages == (stage,)
    assert f"{spec.name.capitalize()} <small>inconclusive" in html.render(whole)
    assert screen.render(whole) is not None


def test_each_module_of_a_stage_is_registered() -> None:
    folder = Path(registry.__file__).with_name("stages")
    there = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/stage.py")}
    assert there - {"__init__"} == set(NAMES)


def test_choosing_stages() -> None:
    assert registry.choose(["needle", "codec"]) == ("codec", "needle")
    assert registry.choose([], full=True) == NAMES
    assert registry.choose(()) == tuple(name for name in NAMES if name not in ("ops", "placement", "device", "speed"))
    with pytest.raises(UsageError, match="no stage 'magic'") as caught:
        registry.choose(["codec", "magic"])
    assert "source, codec, ops" in caught.value.remedy


def test_an_unknown_stage_ends_the_command_line() -> None:
    done = CliRunner().invoke(app, ["verify", "--stage", "magic"])
    assert done.exit_code != 0
