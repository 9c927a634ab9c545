"""Render a report as one self-contained HTML file: no network, no scripts, styles for light, dark and print."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tqforge.core.pair import Pair
from tqforge.report import fmt
from tqforge.report.judge import needles, pair_levels, select, thresholds
from tqforge.report.judge.findings import Kind
from tqforge.report.render import bars, heatmap, kl_chart, usage
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
    "time",
)
#: Characters of an answer that the page shows; `report.json` has the rest.
ANSWER_LIMIT = 4_000


def render(report: Report) -> str:
    """Return the page. The same report gives the same bytes."""
    return environment().get_template("report.html.j2").render(_view(report)).strip() + "\n"


def environment() -> Environment:
    """Return the template environment. Every text is escaped, and invisible characters are made visible."""
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
    made.filters.update(
        standing=select.target_status,
        stage_title=fmt.stage_title,
        why=pairs.why,
        reason=pairs.reason,
        quality_name=pairs.name,
    )
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
        flags=usage.flags,
    )
    return made


def _finalize(value: Any) -> Any:
    """Make invisible characters visible; called for every value that a template prints."""
    return fmt.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _view(report: Report) -> dict[str, Any]:
    found = [one for one in sentences.findings(report) if one.kind is not Kind.ADVICE or one.stage != "plan"]
    rows = select.main_quality_rows(report)
    return {
        "report": report,
        "head": sentences.headline(report),
        "groups": [(kind, sentences.KIND_TITLE[kind], [f for f in found if f.kind is kind]) for kind in Kind],
        "stages": list(zip(report.stages, sentences.marks(report), strict=True)),
        "judged": sorted(pair_levels.judge(report), key=lambda one: select.pair_order(report)(one.pair)),
        "use": usage.recommended(report),
        "reach": pair_levels.reach(report),
        "plan": select.plan_stage(report),
        "plan_bars": bars.plan(report),
        "best": {pairs.name(row) for row in select.pareto(kl_chart.drawable(rows))},
        "check_stages": [stage for stage in report.stages if isinstance(stage, CheckStage) and stage.checks],
        "ops": select.ops_rows(report),
        "device": next((stage for stage in select.stages_of(report, DeviceStage) if stage.rows), None),
        "maps": needles.needle_maps(report),
        "kinds": _by_kind(report),
        "needle_stage": next(iter(select.stages_of(report, NeedleStage)), None),
        "memory": bars.memory(report),
        "quality": select.quality_rows(report),
        "quality_stage": next(iter(select.stages_of(report, QualityStage)), None),
        "prefix": rows[0].prefix if rows else 0,
        "exact_floor": _exact_floor(rows),
        "bands": (thresholds.CLOSE, thresholds.CHANGED, thresholds.BROKEN),
        "wide": Markup(kl_chart.kl_chart(rows, "kl-wide")),  # noqa: S704  # drawn here, its texts are escaped by matplotlib
        "narrow": Markup(kl_chart.kl_chart(rows, "kl-narrow", narrow=True)),  # noqa: S704
        "speed": bars.speed(report),
        "speed_stage": next(iter(select.stages_of(report, SpeedStage)), None),
        "answers": _answers(report),
        "answer_limit": ANSWER_LIMIT,
        "prompts": _prompts(report),
        "command": shlex.join(fmt.visible(part) for part in report.command),
    }


def _exact_floor(rows: Iterable[QualityRow]) -> bool:
    """Whether f16 against itself gave exactly 0, which a logarithmic chart cannot show."""
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
    """Each prompt once: its sha256 and its place in the needle grid."""
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
