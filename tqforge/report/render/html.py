"""`report.html`: one file that asks for nothing, runs nothing and says the same in light, in dark and on paper."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tqforge.core.pair import Pair
from tqforge.report import fmt
from tqforge.report.judge import needles, pair_levels, select, thresholds
from tqforge.report.judge.findings import Kind
from tqforge.report.render import heatmap, kl_chart
from tqforge.report.render.sentences import facts, pairs
from tqforge.report.render.sentences import run as sentences
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import NeedleCell, QualityRow
from tqforge.report.schema.stages import CheckStage, DeviceStage, NeedleStage, QualityStage, SpeedStage

_FILTERS = (
    "count",
    "percent",
    "percent_range",
    "size",
    "memory",
    "figure",
    "kl",
    "kl_range",
    "ratio",
    "bits",
    "duration",
    "plural",
    "scientific",
    "times",
)
#: Longer answers are cut in the page; `report.json` holds them whole.
ANSWER_LIMIT = 4_000


def render(report: Report) -> str:
    """The page. The same report gives the same bytes."""
    return environment().get_template("report.html.j2").render(_view(report)).strip() + "\n"


def environment() -> Environment:
    """Templates with the words of the report; every text is made visible and escaped."""
    made = Environment(
        loader=PackageLoader("tqforge.report.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    for name in _FILTERS:
        made.filters[name] = getattr(fmt, name)
    made.filters["standing"] = select.target_status
    made.filters["stage_title"] = fmt.stage_title
    made.filters["why"] = pairs.why
    made.filters["reason"] = pairs.reason
    made.globals.update(
        STATUS_WORD=fmt.STATUS_WORD,
        STATUS_SIGN=fmt.STATUS_SIGN,
        LEVEL_SIGN=pairs.LEVEL_SIGN,
        ROTATION=pairs.ROTATION,
        NONE=fmt.NONE,
        shade=heatmap.shade,
        describe=heatmap.describe,
        is_ours=lambda pair: pair.has_tq3_0,
        matches=select.matches,
        measured_bits=select.measured_bits,
        quality_name=pairs.name,
        noise=facts.noise,
        slower_than=select.slower_than,
    )
    return made


def _finalize(value: Any) -> Any:
    """Every text of the report passes here before it is escaped."""
    return fmt.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _view(report: Report) -> dict[str, Any]:
    found = [one for one in sentences.findings(report) if one.kind is not Kind.ADVICE or one.stage != "plan"]
    rows = select.main_quality_rows(report)
    return {
        "report": report,
        "head": sentences.headline(report),
        "groups": [(kind, sentences.KIND_TITLE[kind], [f for f in found if f.kind is kind]) for kind in Kind],
        "stages": list(zip(report.stages, sentences.marks(report), strict=True)),
        "judged": pair_levels.judge(report),
        "reach": pair_levels.reach(report),
        "plan": select.plan_stage(report),
        "plan_bars": _plan(report),
        "best": {pairs.name(row) for row in select.pareto(kl_chart.drawable(rows))},
        "check_stages": [stage for stage in report.stages if isinstance(stage, CheckStage) and stage.checks],
        "ops": select.ops_rows(report),
        "device": next((stage for stage in select.stages_of(report, DeviceStage) if stage.rows), None),
        "maps": needles.needle_maps(report),
        "kinds": _by_kind(report),
        "needle_stage": next(iter(select.stages_of(report, NeedleStage)), None),
        "memory": _memory(report),
        "quality": select.quality_rows(report),
        "quality_stage": next(iter(select.stages_of(report, QualityStage)), None),
        "prefix": rows[0].prefix if rows else 0,
        "exact_floor": _exact_floor(rows),
        "bands": (thresholds.CLOSE, thresholds.CHANGED, thresholds.BROKEN),
        "wide": Markup(kl_chart.kl_chart(rows, "kl-wide")),  # noqa: S704  # drawn here, its texts are escaped by matplotlib
        "narrow": Markup(kl_chart.kl_chart(rows, "kl-narrow", narrow=True)),  # noqa: S704
        "speed": _speed(report),
        "speed_stage": next(iter(select.stages_of(report, SpeedStage)), None),
        "answers": _answers(report),
        "answer_limit": ANSWER_LIMIT,
        "prompts": _prompts(report),
        "command": shlex.join(fmt.visible(part) for part in report.command),
    }


def _exact_floor(rows: Iterable[QualityRow]) -> bool:
    """f16 against itself differs by nothing at all, so the chart has no line to draw for it."""
    floors = [row for row in rows if row.is_floor]
    return bool(floors) and all(row.kl.value == 0 for row in floors)


def _cells(report: Report) -> list[NeedleCell]:
    return [cell for stage in select.stages_of(report, NeedleStage) for cell in stage.cells]


def _answers(report: Report) -> list[tuple[Pair, str, list[NeedleCell]]]:
    order = select.pair_order(report)
    cells = sorted(
        _cells(report),
        key=lambda c: (c.control == needles.NO_NEEDLE, order(c.pair), c.control, c.length, c.depth, c.seed),
    )
    groups = groupby(cells, key=lambda cell: (cell.pair, cell.control))
    return [(pair, control, list(some)) for (pair, control), some in groups]


def _prompts(report: Report) -> list[tuple[str, str]]:
    """Each prompt once: its sha256 and what it is."""
    seen: dict[str, str] = {}
    for cell in _cells(report):
        depth = "no needle" if cell.control == needles.NO_NEEDLE else f"depth {fmt.percent(cell.depth)}"
        place = f"{fmt.count(cell.length)} tokens, {depth}, seed {cell.seed}"
        seen.setdefault(cell.prompt_sha256, place)
    return [(digest, place) for digest, place in seen.items() if digest]


def _by_kind(report: Report) -> list[tuple[Pair, list[tuple[str, needles.Tally]]]]:
    """Per pair, the tally of each kind of fact; empty if there is one kind only."""
    cells = [cell for cell in _cells(report) if cell.control != needles.NO_NEEDLE]
    kinds = sorted({cell.fact_kind for cell in cells})
    if len(kinds) < 2:
        return []
    order = select.pair_order(report)
    found = sorted({cell.pair for cell in cells}, key=order)
    return [
        (pair, [(kind, needles.tally(c for c in cells if (c.pair, c.fact_kind) == (pair, kind))) for kind in kinds])
        for pair in found
    ]


@dataclass(frozen=True)
class Bar:
    """A row of a bar chart: widths in percent of the longest bar."""

    row: Any
    widths: tuple[float, ...]


def _scale(value: float, most: float) -> float:
    return round(100 * value / most, 2) if most > 0 and fmt.known(value) else 0.0


def _memory(report: Report) -> list[tuple[int, list[Bar]]]:
    groups = []
    for n_ctx, some in groupby(select.memory_rows(report), key=lambda row: row.n_ctx):
        rows = list(some)
        most = max(max(row.k_measured + row.v_measured, row.k_formula + row.v_formula) for row in rows)
        sizes = [(row, (row.k_measured, row.v_measured, row.k_formula, row.v_formula)) for row in rows]
        groups.append((n_ctx, [Bar(row, tuple(_scale(value, most) for value in four)) for row, four in sizes]))
    return sorted(groups, reverse=True)


def _plan(report: Report) -> list[Bar]:
    """Weights, cache and buffers of the recommended length: as measured (planned where not), then as planned."""
    plan = select.plan_stage(report)
    rows = [row for row in plan.rows if row.n_ctx == plan.n_ctx] if plan else []
    order = select.pair_order(report)
    most = max((max((row.measured or row.planned).total, row.planned.total) for row in rows), default=0)
    return [
        Bar(
            row,
            tuple(
                _scale(value, most)
                for need in (row.measured or row.planned, row.planned)
                for value in (need.weights, need.kv + need.kv_swa, need.compute)
            ),
        )
        for row in sorted(rows, key=lambda row: order(row.pair))
    ]


def _speed(report: Report) -> list[tuple[str, list[tuple[int, list[Bar]]]]]:
    groups = []
    for phase, some in groupby(select.speed_rows(report), key=lambda row: row.phase):
        rows = list(some)
        most = max((row.rate.value for row in rows if fmt.known(row.rate.value)), default=0.0)
        depths = [
            (depth, [Bar(row, (_scale(row.rate.value, most),)) for row in deep])
            for depth, deep in groupby(rows, key=lambda row: row.depth)
        ]
        groups.append((str(phase), depths))
    return groups
