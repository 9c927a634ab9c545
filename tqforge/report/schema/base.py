"""What rows and stages are made of, and the keys that every figure was measured under."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

#: A measured figure. What came out as no finite number is NaN in memory and null in the JSON, both ways.
Real = Annotated[
    float,
    BeforeValidator(lambda value: math.nan if value is None else value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]}),
]


class Status(StrEnum):
    """What a check came to. `deferred` could not run here and says why; it never counts as passed."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    DEFERRED = "deferred"
    ERROR = "error"


class Outcome(StrEnum):
    """What one needle cell came to."""

    HIT = "hit"
    PARTIAL = "partial"
    MISS = "miss"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


class Record(BaseModel):
    """Base of all records: frozen, no unknown keys, no NaN in the JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Machine(Record):
    system: str
    release: str
    arch: str
    cpu: str
    cores: int
    memory: int
    python: str


class BuildKeys(Record):
    """What the measured library was built from."""

    base: str
    commit: str
    tree: str
    series_sha256: str
    preset: str
    flags: tuple[str, ...]
    compiler: str
    stamp: str
    version: str


class ModelKeys(Record):
    """What was read from the GGUF itself."""

    name: str
    file: str
    sha256: str
    size: int
    arch: str
    layers: int
    heads: int
    kv_heads: int
    head_k: int
    head_v: int
    trained_context: int
    vocabulary: int
    swa_window: int | None = None
    mla: bool = False
    chat_template: bool = True


class RunSettings(Record):
    """How contexts were made; equal for all pairs of a run."""

    threads: int
    n_batch: int
    gpu_layers: int
    flash_attention: bool = True


class Failure(Record):
    """The error that ended a stage, as the command line would print it."""

    kind: str
    code: int
    what: str
    where: str = ""
    remedy: str = ""


class Check(Record):
    """One yes-or-no question with what was expected and what was seen."""

    name: str
    status: Status
    expected: str = ""
    observed: str = ""
    reason: str = ""
    cases: int | None = None


class Interval(Record):
    """A figure with the bounds of its 95 % interval."""

    value: Real
    low: Real
    high: Real
