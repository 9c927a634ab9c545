"""Base types of all records: numbers, intervals, statuses, checks and errors."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from tqforge.errors import TqforgeError

#: A measured figure. A value that is not finite is NaN in memory and null in JSON.
Real = Annotated[
    float,
    BeforeValidator(lambda value: math.nan if value is None else value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]}),
]


class StageStatus(StrEnum):
    """Result of a stage, a check or a run. `skipped` could not run here and says why; it never counts as passed."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


class CellOutcome(StrEnum):
    """Result of one needle question."""

    HIT = "hit"
    PARTIAL = "partial"
    MISS = "miss"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


class NeedleResult(StrEnum):
    """Needles that a pair found, of those that f16 found: all, some, none; or f16 found none, or errors."""

    KEPT = "kept"
    LOSSES = "losses"
    LOST = "lost"
    NOT_JUDGED = "not judged"
    ERRORS = "errors"


class PairLevel(StrEnum):
    """How well a pair suits a model, from best to worst."""

    SAFE = "safe"
    UNDECIDED = "undecided"
    LOSSY = "costs quality"
    UNSAFE = "unsafe"


class Choice(StrEnum):
    """Result of looking for a pair that fits a memory budget."""

    REFERENCE = "f16 fits"
    FITS = "a safe pair fits"
    TOO_SMALL = "no safe pair fits"
    NOT_MEASURED = "quality was not measured"


Phase = Literal["prefill", "decode", "end-to-end"]


class Record(BaseModel):
    """Base of all records: frozen, no unknown keys, no NaN in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class ErrorRecord(Record):
    """The error that ended a stage, as the command line would print it."""

    kind: str
    code: int
    what: str
    where: str = ""
    remedy: str = ""

    @classmethod
    def of(cls, error: TqforgeError) -> ErrorRecord:
        """Record an error."""
        return cls(
            kind=type(error).__name__, code=int(error.code), what=error.what, where=error.where, remedy=error.remedy
        )


class Check(Record):
    """One check: what was expected and what was observed."""

    name: str
    status: StageStatus
    expected: str = ""
    observed: str = ""
    reason: str = ""
    cases: int | None = None


class Interval(Record):
    """A figure with its 95% interval."""

    value: Real
    low: Real
    high: Real
