"""The page as text; tests/browser looks at it as a picture."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from page_outline import Outline
from synthetic_parts import PAIRS, TWELVE, digest
from synthetic_report import EDGES, report, stages
from synthetic_stages import plan_stage, speed_stage

from tqforge.core.pair import F16
from tqforge.report.judge.budget import advise
from tqforge.report.render import heatmap, html, kl_chart

PAGES = {name: html.render(make()) for name, make in EDGES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_well_formed_small_and_alone(name: str) -> None:
    page = PAGES[name]
    outline = Outline(page)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert len(page.encode("utf-8")) < 1_000_000
    loads = [
        value for _, attrs in outline.tags for key, value in attrs.items() if key in ("src", "href", "srcset") and value
    ]
    assert {value.split(",")[0] for value in loads if not value.startswith("#")} <= {"data:"}
    assert "url(" not in re.sub(r"url\(#", "", page)
    assert not [tag for tag, _ in outline.tags if tag in ("script", "iframe", "img", "object", "base", "form")]
    assert not [key for _, attrs in outline.tags for key in attrs if key.startswith("on")]


@pytest.mark.parametrize("name", PAGES)
def test_one_first_heading_and_no_gap(name: str) -> None:
    levels = [int(tag[1]) for tag, _ in Outline(PAGES[name]).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_same_report_same_bytes() -> None:
    assert html.render(report()) == PAGES["usual"]


def test_order_of_the_sections() -> None:
    ids = [attrs.get("id") for tag, attrs in Outline(PAGES["twelve pairs"]).tags if tag == "section"]
    assert ids == [
        "verdict",
        "choice",
        "reading",
        "needle",
        "memory",
        "quality",
        "speed",
        "device",
        "checks",
        "answers",
        "provenance",
    ]
    assert [a.get("id") for t, a in Outline(PAGES["everything deferred"]).tags if t == "section"] == [
        "verdict",
        "reading",
        "provenance",
    ]


def test_headings_of_a_whole_page() -> None:
    """The contents of the page at a glance; stages go by their names."""
    page = html.render(advise(report(stages=(*stages(), plan_stage(), speed_stage()))))
    found = re.findall(r"<h([12])[^>]*>(.*?)</h", page, re.DOTALL)
    assert [re.sub("<[^>]+>", "", text).strip() for _, text in found[2:]] == [
        "K/V pairs for this model",
        "How to read this report",
        "Needle: facts found in long texts",
        "Memory: size of the KV cache",
        "Quality: difference from f16",
        "Speed",
        "Device: the whole model against the CPU",
        "Checks",
        "All answers",
        "Provenance",
    ]
    assert found[0] == ("1", "synthetic.gguf")


def test_times_are_short_and_in_utc() -> None:
    assert "2026-01-02 03:04 UTC" in PAGES["usual"]
    assert not re.findall(r"\d\dT\d\d:\d\d|\+00:00", PAGES["usual"])


def test_pairs_have_one_order_on_the_whole_page() -> None:
    page = html.render(advise(report(stages=(*stages(), plan_stage()))))
    page = page[: page.index('id="answers"')]
    parts = re.findall(r'<ul class="answer".*?</ul>|<table.*?</table>|<div class="maps".*?</div>', page, re.DOTALL)
    assert len(parts) > 8
    for section in parts:
        shown = [str(pair) for pair in PAIRS if f">{pair}<" in section]
        places = [section.index(f">{pair}<") for pair in shown]
        assert places == sorted(places), section[:200]


def test_hostile_texts_are_shown_and_do_nothing() -> None:
    page = PAGES["hostile"]
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "{{ 7 * 7 }}" in page
    assert "\u202e" not in page
    assert "&lt;U+202E&gt;" in page
    assert "\x1b" not in page
    assert "further characters in report.json" in page
    page.encode("utf-8")


def test_every_answer_is_there() -> None:
    whole = report()
    answers = sum(len(getattr(stage, "cells", ())) for stage in whole.stages)
    assert len(re.findall(r'<tr class="o-', PAGES["usual"])) == answers > 100


def test_keys_and_command_are_whole() -> None:
    page = PAGES["usual"]
    for key in (
        "a" * 40,
        "c" * 40,
        digest("series"),
        digest("model"),
        digest("512-0.0-1"),
        "-DGGML_NATIVE=ON",
        "cc 12.2",
    ):
        assert key in page
    assert "tqforge verify --quick --pairs &#39;tq3_0/tq3_0 and more&#39;" in page


def test_a_cell_says_its_score_and_number_and_what_could_not_be_judged() -> None:
    page = PAGES["usual"]
    assert re.search(r'title="tq3_0/tq3_0, 4,096 tokens, depth 50%: [^"]*1 inconclusive"', page)
    assert re.search(r"<b>100%</b><small>n 3</small>", page)
    crash = PAGES["crash in the middle"]
    assert 'class="h-error"' in crash
    assert 'class="h-empty"' in crash


def test_the_control_without_a_needle_has_no_depth() -> None:
    """Its cells carry some depth; it must not become a column of the other maps."""
    page = PAGES["usual"]
    assert page.count('<th scope="col">no needle</th>') == 1
    assert page.count('<span class="hidden">depth </span>90%') == 0
    assert 'title="f16/f16, 512 tokens, no needle: 1 missed"' in page


def test_twelve_pairs_are_all_drawn() -> None:
    page = PAGES["twelve pairs"]
    for pair in TWELVE:
        assert f'data-pair="{pair}"' in page
        assert str(pair) in page.split('class="kl-wide"')[1] or pair == F16


def test_the_chart_is_drawn_in_variables_of_the_page() -> None:
    drawing = PAGES["usual"].split('<svg class="kl-wide"')[1].split("</svg>")[0]
    assert "var(--ours)" in drawing
    assert "var(--ink)" in drawing
    assert not re.findall(r"#0102\w\w", drawing)
    assert "<title>" in drawing
    assert "<desc>tq3_0/tq3_0" in drawing or "tq3_0/tq3_0: 3.5 bits" in drawing


def test_no_chart_for_nothing() -> None:
    assert kl_chart.kl_chart([], "empty") == ""


def rgb(color: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    return red, green, blue


@pytest.mark.parametrize("score", [index / 20 for index in range(21)])
def test_figures_in_the_map_can_be_read(score: float) -> None:
    back, ink = map(rgb, re.findall(r"#\w{6}", heatmap.shade(score)))
    assert heatmap.contrast(back, ink) >= 4.5


def test_found_and_lost_differ_in_lightness_too() -> None:
    """Told apart in grey, and so by every kind of colour vision."""
    backs = [heatmap.shade(score / 4)[12:18] for score in range(5)]
    black = [heatmap.contrast(rgb(back), (0, 0, 0)) for back in backs]
    assert all(lighter > 1.15 * darker for darker, lighter in pairwise(black[:4]))
    assert black[4] > 6 * black[0]


def test_speed_is_shown_when_it_was_measured() -> None:
    assert 'id="speed"' not in PAGES["usual"]
    page = html.render(report(stages=(speed_stage(),)))
    assert "at depth 4,096" in page
    assert page.count('class="b-k"') > 0
    assert ">Targets<" in page
    for word in ("met", "missed", "not decided"):
        assert f"<small>{word}</small>" in page
    assert ">llama-bench<" in page
    assert "<code>/builds/first</code>" in page
    assert "46%" in page  # attention at depth 4,096
    assert "The machine was busy" not in page
    loud = speed_stage().model_copy(update={"spread": 0.2, "busy": 0.5})
    assert "The machine was busy: repeated rates differ by 20% from their median and this run had 50%" in html.render(
        report(stages=(loud,))
    )
