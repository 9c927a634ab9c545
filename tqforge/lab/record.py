"""The recorded run of the lab: what was measured on each model, and under which provenance."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tqforge.adapters import fs
from tqforge.errors import ConfigError
from tqforge.lab.claims.claim import Evidence
from tqforge.lab.request import Answers, Capture, Prompt, Scores

SCHEMA: Literal["tqforge.lab/1"] = "tqforge.lab/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelRecord(_Frozen):
    """All results of one model. `parameters` is its number of parameters."""

    name: str
    file: str
    sha256: str
    architecture: str
    parameters: int
    head_k: int
    head_v: int
    prompts: tuple[Prompt, ...]
    reference: Scores | None
    scores: tuple[Scores, ...]
    answers: tuple[Answers, ...]
    capture: Capture | None
    seconds: float

    def evidence(self) -> Evidence:
        return Evidence(
            model=self.name,
            family=self.architecture,
            parameters=self.parameters,
            scores={one.trial: one for one in self.scores},
            reference=self.reference.nll if self.reference else (),
            prompts=self.prompts,
            answers={one.trial: one.texts for one in self.answers},
            capture=self.capture,
        )


class LabRecord(_Frozen):
    """One run. tree: the git tree of the llama.cpp that ran. text: sha256 of the scored text."""

    schema_id: Literal["tqforge.lab/1"] = SCHEMA
    tree: str
    command: str
    date: str
    text_sha256: str
    windows: tuple[tuple[int, int], ...]
    models: tuple[ModelRecord, ...]


def write(record: LabRecord, path: Path) -> None:
    fs.write_text(path, record.model_dump_json(indent=1) + "\n")


def read(path: Path) -> LabRecord:
    """Return a recorded run. Raises ConfigError for a file that is none."""
    try:
        return LabRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the lab record: {error.strerror}.", where=str(path)) from error
    except ValidationError as error:
        raise ConfigError(
            f"The file is not a lab record of this version: {error.errors()[0]['msg']}.",
            where=str(path),
            remedy="Run `tqforge lab claims` again.",
        ) from error
