"""Render one page for several models: verdicts and figures side by side, with links to each model's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tqforge.core.pair import Pair
from tqforge.report import fmt
from tqforge.report.judge import needles, pair_levels, select, thresholds
from tqforge.report.render import html, kl_chart
from tqforge.report.render.sentences import pairs
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import PairVerdict, QualityRow
from tqforge.report.schema.stages import PlanStage

Linked = tuple[str, Report]


@dataclass(frozen=True)
class Column:
    """One model and what the page shows of it."""

    link: str
    name: str
    report: Report
    verdicts: dict[str, PairVerdict]
    rows: dict[str, QualityRow]
    floor: QualityRow | None
    found: dict[Pair, needles.Tally]
    plan: PlanStage | None
    best: frozenset[str]
    wide: Markup
    narrow: Markup


def render(reports: Sequence[Linked]) -> str:
    """Return the page. The same reports give the same bytes."""
    columns = [_column(index, link, report) for index, (link, report) in enumerate(reports)]
    order = select.pair_order(reports[0][1])
    names = dict.fromkeys(name for column in columns for name in column.verdicts)
    view = {
        "columns": columns,
        "pairs": sorted(((name, _any(columns, name)) for name in names), key=lambda item: order(item[1].pair)),
        "bands": (thresholds.CLOSE, thresholds.CHANGED, thresholds.BROKEN),
        "report": reports[0][1],
        "sentences": [
            (column.name, pairs.levels(column.verdicts.values(), pair_levels.reach(column.report)))
            for column in columns
        ],
    }
    return html.environment().get_template("comparison.html.j2").render(view).strip() + "\n"


def _any(columns: Sequence[Column], name: str) -> PairVerdict:
    return next(column.verdicts[name] for column in columns if name in column.verdicts)


def _column(index: int, link: str, report: Report) -> Column:
    main = select.main_quality_rows(report)
    title = fmt.line(report.model.file) if report.model else f"model {index + 1}"
    maps = needles.needle_maps(report)
    return Column(
        link=link,
        name=title,
        report=report,
        verdicts={pairs.name(one): one for one in pair_levels.judge(report)},
        rows={pairs.name(row): row for row in main if not row.is_floor},
        floor=next((row for row in main if row.is_floor), None),
        found={one.pair: one.total for one in maps if not one.must_miss},
        plan=select.plan_stage(report),
        best=frozenset(pairs.name(row) for row in select.pareto(kl_chart.drawable(main))),
        wide=Markup(kl_chart.kl_chart(main, f"kl-wide-{index}")),  # noqa: S704  # drawn here, its texts are escaped
        narrow=Markup(kl_chart.kl_chart(main, f"kl-narrow-{index}", narrow=True)),  # noqa: S704
    )
