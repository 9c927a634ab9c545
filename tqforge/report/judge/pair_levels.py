"""Which pairs suit this model: rated by their worst KL divergence over all prefix lengths and by their needles."""

from __future__ import annotations

from tqforge.core.pair import Pair
from tqforge.report.judge import needles, select, thresholds
from tqforge.report.judge.needles import Tally
from tqforge.report.schema.base import Interval
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import PairVerdict, QualityRow


def judge(report: Report) -> list[PairVerdict]:
    """Return one verdict per pair that was compared with f16, the smallest cache first."""
    hardest: dict[tuple[Pair, bool], QualityRow] = {}
    for row in select.quality_rows(report):
        key = row.pair, row.unrotated
        if not row.is_floor and (key not in hardest or not row.kl.value <= hardest[key].kl.value):
            hardest[key] = row
    found = {chart.pair: chart.total for chart in needles.needle_maps(report) if chart.control == "none"}
    made = [
        _judge(row, None if row.unrotated else found.get(row.pair), _rate(report, row.pair)) for row in hardest.values()
    ]
    return sorted(made, key=lambda one: (one.bits, one.pair, one.unrotated))


def _rate(report: Report, pair: Pair) -> Interval | None:
    summary = needles.needle_summary(report, pair)
    return summary.rate if summary else None


def _judge(row: QualityRow, needles: Tally | None, rate: Interval | None) -> PairVerdict:
    reached = [thresholds.by_kl(row.kl)]
    if needles and needles.n:
        reached.append(thresholds.by_needles(needles.hits, needles.n, rate))
    return PairVerdict(
        pair=row.pair,
        bits=row.bits,
        level=thresholds.worst(reached),
        kl=row.kl,
        hits=needles.hits if needles else 0,
        needles=needles.n if needles else 0,
        unrotated=row.unrotated,
    )


def reach(report: Report) -> int:
    """Return the length in tokens of the longest text that any verdict rests on."""
    rows = [row.prefix + row.tokens for row in select.quality_rows(report)]
    asked = [length for chart in needles.needle_maps(report) for length, cells in chart.rows if any(c.n for c in cells)]
    return max([*rows, *asked], default=0)
