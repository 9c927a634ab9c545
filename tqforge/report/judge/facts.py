"""What the rules find, as values. `report.render.sentences` puts them into words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import dataclass_transform

from tqforge.core.pair import Pair
from tqforge.report.judge.needles import Tally
from tqforge.report.schema.base import Check, Interval, Phase
from tqforge.report.schema.rows import (
    DeviceRow,
    MemoryRow,
    PairVerdict,
    QualityRow,
    Recommendation,
    SpeedRatio,
)
from tqforge.report.schema.stages import Stage


@dataclass_transform(frozen_default=True)
class Fact:
    """Base of all facts; every subclass is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class ChecksPassed(Fact):
    passed: int
    total: int
    cases: int


class CheckOpen(Fact):
    """A check that failed, was skipped or is inconclusive."""

    check: Check


class OpsCounted(Fact):
    backend: str
    passed: int
    failed: int
    unsupported: int
    wrong: tuple[str, ...]


class DeviceCompared(Fact):
    row: DeviceRow
    device: str
    floor: float | None


class MemoryOff(Fact):
    """A cache whose size is not what the block sizes give."""

    row: MemoryRow


@dataclass(frozen=True)
class CacheSize:
    """Bits per value of a cache, and how many times smaller than f16 it is, where f16 was measured."""

    pair: Pair
    bits: float | None
    smaller: float | None


class BytesPerValue(Fact):
    size: CacheSize
    bytes: int
    values: int


class SizesExact(Fact):
    sizes: tuple[CacheSize, ...]


class OtherSizesExact(Fact):
    rows: int


class NeedlesFound(Fact):
    pair: Pair
    tally: Tally
    rate: Interval | None


class StockNeedles(Fact):
    found: tuple[tuple[Pair, Tally], ...]


class ReferenceNeedles(Fact):
    pair: Pair
    tally: Tally


class NoNeedle(Fact):
    """Answers where no needle was hidden."""

    pair: Pair
    tally: Tally


class Beside(StrEnum):
    """A pair's KL beside that of a larger stock pair, by their intervals."""

    HIGHER = "higher"
    LOWER = "lower"
    SAME = "same"


class Distance(Fact):
    """How far a pair is from f16; `beside` compares it with the next larger stock pair, where there is one."""

    row: QualityRow
    larger: QualityRow | None = None
    beside: Beside | None = None


class BetterKeys(Fact):
    """Spending bits on keys pays: `dear` is much closer to f16 than `cheap`, which has the same V type."""

    dear: QualityRow
    cheap: QualityRow


class Slow(Fact):
    """Rates of a pair below the threshold, against f16 or its stock neighbour."""

    pair: Pair
    against: Pair
    low: float
    high: float
    places: tuple[tuple[Phase, int], ...]


class RateShares(Fact):
    """Rates of a pair as shares of f16's, per phase: the lowest and the highest."""

    pair: Pair
    spans: tuple[tuple[Phase, float, float], ...]


class TargetChecked(Fact):
    ratio: SpeedRatio
    noisy: bool


class PairLevels(Fact):
    verdicts: tuple[PairVerdict, ...]
    reach: int  # tokens of the longest text measured


class Recommended(Fact):
    choice: Recommendation


class StageEnded(Fact):
    """A stage that did not pass, in its own recorded words."""

    stage: Stage
    observations: int


class NotReached(Fact):
    stages: tuple[str, ...]


class NotAsked(Fact):
    stages: tuple[str, ...]
