"""The page over several models."""

from __future__ import annotations

import re

from page_outline import Outline
from synthetic_parts import interval
from synthetic_report import report, stages
from synthetic_stages import quality_row

from tqforge.core.pair import Pair
from tqforge.report.judge.budget import advise
from tqforge.report.render import models_page
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import MemoryNeed, PlanRow
from tqforge.report.schema.stages import PlanStage, QualityStage


def hard() -> Report:
    """A model that symmetric 4-bit caches break."""
    rows = [
        quality_row("q8_0/q8_0", kl=interval(0.0064)),
        quality_row("q4_0/q4_0", kl=interval(2.06)),
        quality_row("q8_0/tq3_0", kl=interval(0.0307)),
        quality_row("q4_0/q4_0", kl=interval(2.2), unrotated=True),
    ]
    need = MemoryNeed(weights=1 << 20, kv=1 << 20, compute=1 << 20)
    plan = PlanStage(
        status=StageStatus.PASSED,
        n_ctx=4096,
        rows=tuple(PlanRow(pair=Pair.parse(pair), n_ctx=4096, planned=need) for pair in ("f16/f16", "q8_0/tq3_0")),
    )
    made = report(stages=(QualityStage(status=StageStatus.PASSED, rows=tuple(rows)), plan))
    assert made.model is not None
    return advise(made.model_copy(update={"model": made.model.model_copy(update={"file": "hard <model>"})}))


def page() -> str:
    return models_page.render([("easy/report.html", advise(report(stages=stages()))), ("hard/report.html", hard())])


def test_it_is_one_well_formed_file_with_links_to_each_model() -> None:
    outline = Outline(page())
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    links = [attrs["href"] for tag, attrs in outline.tags if tag == "a" and not str(attrs["href"]).startswith("#")]
    assert set(links) == {"easy/report.html", "hard/report.html"}
    assert not [tag for tag, _ in outline.tags if tag in ("script", "iframe", "img", "object", "form")]


def test_a_pair_stands_beside_itself_on_the_other_model() -> None:
    text = page()
    assert "hard &lt;model&gt;" in text
    row = re.search(r'<tr><th scope="row"><span class="pair">q4_0/q4_0</span>.*?</tr>', text, re.DOTALL)
    assert row
    assert "undecided" in row[0] or "costs quality" in row[0] or "safe" in row[0]
    assert "unsafe" in row[0]
    assert text.count("<small>rotation off</small>") == 2, "in the tables of figures, not among the verdicts"
    assert page() == text


def test_one_drawing_per_model() -> None:
    text = page()
    assert text.count('<svg class="kl-wide-') == text.count('<svg class="kl-narrow-') == 2
