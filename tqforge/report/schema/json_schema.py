"""Generate `report.schema.json`: run `python -m tqforge.report.schema.json_schema`."""

from __future__ import annotations

import json
from pathlib import Path

from tqforge.adapters import fs
from tqforge.report.schema.report import Report

PATH = Path(__file__).with_name("report.schema.json")


def text() -> str:
    """Return the JSON schema of `report.json`."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Report.model_json_schema(mode="serialization"),
    }
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    fs.write_text(PATH, text())
