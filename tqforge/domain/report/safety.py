"""Which pairs can be used with this model, from what was measured on it. Pure.

A pair is judged by its worst KL divergence over all prefix lengths and by its needles. An interval that lies across a
bound leaves the pair undecided: more tokens or more seeds decide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tqforge.domain.report import figures, needles, words
from tqforge.domain.report.fidelity import BROKEN, CHANGED, quality_name
from tqforge.domain.report.needles import Tally
from tqforge.domain.report.schema import Interval, QualityRow, Recommendation, Report

#: A pair whose whole 95 % interval of needles found lies below this loses text.
LEAST_FOUND = 0.95
#: One whose whole interval lies below this is of no use for long texts.
LEAST_USABLE = 0.5


class Level(StrEnum):
    """From the best to the worst."""

    SAFE = "safe"
    UNDECIDED = "undecided"
    LOSSY = "costs quality"
    UNSAFE = "unsafe"


SIGN = {
    Level.SAFE: "\N{CHECK MARK}",
    Level.UNDECIDED: "?",
    Level.LOSSY: "~",
    Level.UNSAFE: "\N{BALLOT X}",
}


@dataclass(frozen=True)
class Judgement:
    """One pair with the level it reached and the figures that decided."""

    name: str
    pair: str
    bits: float
    level: Level
    why: str


def judge(report: Report) -> list[Judgement]:
    """One judgement per pair that was compared with f16, the smallest cache first."""
    rows = figures.distinct([row for row in figures.quality_rows(report) if not row.is_floor])
    worst: dict[str, QualityRow] = {}
    for row in rows:
        name = quality_name(row)
        if name not in worst or not row.kl.value <= worst[name].kl.value:
            worst[name] = row
    found = {chart.pair: chart.total for chart in needles.needle_maps(report) if chart.control == "none"}
    made = [_judge(name, row, found.get(row.pair), _rate(report, row.pair)) for name, row in worst.items()]
    return sorted(made, key=lambda one: (one.bits, one.name))


def _rate(report: Report, pair: str) -> Interval | None:
    summary = needles.needle_summary(report, pair)
    return summary.rate if summary else None


def _judge(name: str, row: QualityRow, needles: Tally | None, rate: Interval | None) -> Judgement:
    levels = [_by_kl(row)]
    why = [f"KL {words.kl(row.kl.value)} ({words.kl_range(row.kl)})"]
    if needles and needles.n:
        levels.append(_by_needles(needles, rate))
        why.append(f"{needles.hits} of {words.plural(needles.n, 'needle')}")
    worst = max(levels, key=list(Level).index)
    return Judgement(name, row.pair, row.bits, worst, ", ".join(why))


def _by_kl(row: QualityRow) -> Level:
    bounds = (row.kl.value, row.kl.low, row.kl.high)
    if not all(map(words.known, bounds)):
        return Level.UNDECIDED
    if row.kl.low >= BROKEN:
        return Level.UNSAFE
    if row.kl.high < CHANGED:
        return Level.SAFE
    return Level.LOSSY if row.kl.low >= CHANGED else Level.UNDECIDED


def _by_needles(needles: Tally, rate: Interval | None) -> Level:
    if rate is None or not words.known(rate.high):
        return Level.SAFE if needles.hits == needles.n else Level.UNDECIDED
    if rate.high < LEAST_USABLE:
        return Level.UNSAFE
    return Level.LOSSY if rate.high < LEAST_FOUND else Level.SAFE


def budget(choice: Recommendation) -> str:
    """One recommendation as a sentence."""
    place = f"{words.size(choice.budget)} of memory, {words.count(choice.n_ctx)} tokens"
    tail = f" {words.sentence(words.ending(words.line(choice.reason)))}" if choice.reason else ""
    if not choice.pair:
        return f"{place}: no pair that is safe fits.{tail}"
    need = f" (needs {words.size(choice.need)})" if choice.need is not None else ""
    return f"{place}: {words.line(choice.pair)}{need}.{tail}"


def reach(report: Report) -> int:
    """The longest text, in tokens, that any judgement rests on."""
    rows = [row.prefix + row.tokens for row in figures.quality_rows(report)]
    asked = [length for chart in needles.needle_maps(report) for length, cells in chart.rows if any(c.n for c in cells)]
    return max([*rows, *asked], default=0)


def sentence(report: Report) -> str:
    """The levels of all pairs in one sentence; empty if none was judged."""
    judged = judge(report)
    parts = []
    for level in Level:
        names = [one.name for one in judged if one.level is level]
        if names:
            parts.append(f"{level}: {words.listing(names)}")
    return f"On this model, up to {words.count(reach(report))} tokens, {'; '.join(parts)}." if parts else ""
