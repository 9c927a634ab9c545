"""report.json goes out and comes back whole, and its JSON schema is the one of the code."""

from __future__ import annotations

import json
import math

import pytest
from synthetic_report import EDGES, not_numbers, report

from tqforge.errors import CrashError
from tqforge.report.schema import json_schema
from tqforge.report.schema.base import ErrorRecord
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import QualityStage


def test_the_json_schema_is_in_step_with_the_code() -> None:
    hint = "run: python -m tqforge.report.schema.json_schema"
    assert json_schema.PATH.read_text(encoding="utf-8") == json_schema.text(), hint


@pytest.mark.parametrize("name", [name for name in EDGES if name not in ("hostile", "not numbers")])
def test_a_report_survives_its_json(name: str) -> None:
    whole = EDGES[name]()
    assert Report.model_validate_json(json.dumps(whole.to_json(), allow_nan=False)) == whole


def test_what_is_no_number_is_null_in_the_json_and_comes_back() -> None:
    values = not_numbers().to_json()
    text = json.dumps(values, allow_nan=False)
    rows = next(stage for stage in values["stages"] if stage["name"] == "quality")["rows"]
    assert rows[1]["kl"]["value"] is None
    stage = next(stage for stage in Report.model_validate_json(text).stages if isinstance(stage, QualityStage))
    assert math.isnan(stage.rows[1].kl.value)


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="extra"):
        Report.model_validate({**report().to_json(), "surprise": 1})


def test_an_error_is_recorded_as_the_command_line_prints_it() -> None:
    error = CrashError("The child ended.", where="stage codec", remedy="Run it again.")
    found = ErrorRecord.of(error)
    assert found == ErrorRecord(
        kind="CrashError", code=int(error.code), what="The child ended.", where="stage codec", remedy="Run it again."
    )
