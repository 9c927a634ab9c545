"""Which pairs can be used with this model, from what was measured on it. Pure.

A pair is judged by its worst KL divergence over all prefix lengths and by its needles. An interval that lies across a
bound leaves the pair undecided: more tokens or more seeds decide it.
"""

from __future__ import annotations

from tqforge.core.pair import Pair
from tqforge.report import fmt
from tqforge.report.judge import needles, select, thresholds
from tqforge.report.judge.needles import Tally
from tqforge.report.judge.quality import quality_name
from tqforge.report.schema.base import Interval, PairLevel
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import PairVerdict, QualityRow, Recommendation

SIGN = {
    PairLevel.SAFE: "\N{CHECK MARK}",
    PairLevel.UNDECIDED: "?",
    PairLevel.LOSSY: "~",
    PairLevel.UNSAFE: "\N{BALLOT X}",
}


def judge(report: Report) -> list[PairVerdict]:
    """One verdict per pair that was compared with f16, the smallest cache first."""
    hardest: dict[tuple[Pair, bool], QualityRow] = {}
    for row in select.quality_rows(report):
        key = row.pair, row.unrotated
        if not row.is_floor and (key not in hardest or not row.kl.value <= hardest[key].kl.value):
            hardest[key] = row
    found = {chart.pair: chart.total for chart in needles.needle_maps(report) if chart.control == "none"}
    made = [
        _judge(row, None if row.unrotated else found.get(row.pair), _rate(report, row.pair)) for row in hardest.values()
    ]
    return sorted(made, key=lambda one: (one.bits, quality_name(one)))


def _rate(report: Report, pair: Pair) -> Interval | None:
    summary = needles.needle_summary(report, pair)
    return summary.rate if summary else None


def _judge(row: QualityRow, needles: Tally | None, rate: Interval | None) -> PairVerdict:
    reached = [thresholds.by_kl(row.kl)]
    why = [f"KL {fmt.kl(row.kl.value)} ({fmt.kl_range(row.kl)})"]
    if needles and needles.n:
        reached.append(thresholds.by_needles(needles.hits, needles.n, rate))
        why.append(f"{needles.hits} of {fmt.plural(needles.n, 'needle')}")
    return PairVerdict(
        pair=row.pair,
        bits=row.bits,
        level=thresholds.worst(reached),
        why=", ".join(why),
        needles=needles.n if needles else 0,
        unrotated=row.unrotated,
    )


def budget(choice: Recommendation) -> str:
    """One recommendation as a sentence."""
    place = f"{fmt.memory(choice.budget)} of memory, {fmt.count(choice.n_ctx)} tokens"
    tail = f" {fmt.sentence(fmt.ending(fmt.line(choice.reason)))}" if choice.reason else ""
    if not choice.pair:
        return f"{place}: no pair that is safe fits.{tail}"
    need = f" (needs {fmt.size(choice.need)})" if choice.need is not None else ""
    return f"{place}: {choice.pair}{need}.{tail}"


def reach(report: Report) -> int:
    """The longest text, in tokens, that any judgement rests on."""
    rows = [row.prefix + row.tokens for row in select.quality_rows(report)]
    asked = [length for chart in needles.needle_maps(report) for length, cells in chart.rows if any(c.n for c in cells)]
    return max([*rows, *asked], default=0)


def sentence(report: Report) -> str:
    """The levels of all pairs in one sentence; empty if none was judged."""
    judged = [one for one in judge(report) if not one.unrotated]
    parts = []
    for level in PairLevel:
        names = [quality_name(one) for one in judged if one.level == level]
        if names:
            parts.append(f"{level}: {fmt.listing(names)}")
    return f"On this model, up to {fmt.count(reach(report))} tokens, {'; '.join(parts)}." if parts else ""
