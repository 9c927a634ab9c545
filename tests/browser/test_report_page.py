"""report.html in a real browser: quiet, asking for nothing, readable by day, by night, on a phone and on paper."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_parts import F16, PAIRS, TQ3_0
from synthetic_report import EDGES

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
PAGES = ("whole", "models", *EDGES)

Page = Callable[[str], Path]


def boxes(browser: Any, selector: str) -> list[list[float]]:
    """Width and height of every element that matches."""
    script = """return [...document.querySelectorAll(arguments[0])]
        .map(e => e.getBoundingClientRect()).map(b => [b.width, b.height])"""
    found: list[list[float]] = browser.ask(script, selector)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_quiet_and_alone(browser: Any, page: Page, name: str) -> None:
    browser.open(page(name))
    assert browser.console() == []
    asked = [url for url in browser.requests() if not url.startswith(("data:", "about:"))]
    assert asked == [page(name).as_uri()]
    assert browser.ask("return document.scripts.length") == 0


def test_the_needle_map_is_there_and_visible(browser: Any, page: Page) -> None:
    browser.open(page("whole"))
    cells = boxes(browser, ".heat td")
    assert len(cells) == len(PAIRS) * 3 * 3 + 3  # and the control without a needle
    assert min(min(box) for box in cells) > 20
    paint = "return [...document.querySelectorAll('.heat td.h-judged')].map(e => getComputedStyle(e).backgroundColor)"
    assert len(set(browser.ask(paint))) > 3


def test_inconclusive_and_error_do_not_look_like_a_miss(browser: Any, page: Page) -> None:
    look = """return ['.h-inconclusive', '.h-error', '.heat td.h-empty'].map(s => document.querySelector(s))
        .map(e => { const c = getComputedStyle(e); return [c.backgroundColor, c.backgroundImage, e.innerText] })"""
    browser.open(page("crash in the middle"))
    looks = browser.ask(look)
    assert len({tuple(one[:2]) for one in looks}) == 3
    assert "rgb(122, 34, 4)" not in [one[0] for one in looks]


def test_bars_are_there_and_as_long_as_they_should_be(browser: Any, page: Page) -> None:
    browser.open(page("whole"))
    script = """return [...document.querySelectorAll('#memory .bar:not(.thin)')]
        .map(bar => [...bar.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0))"""
    widths = browser.ask(script)
    assert len(widths) == len(PAIRS)
    f16, ours = widths[PAIRS.index(F16)], widths[PAIRS.index(TQ3_0)]
    assert f16 / ours == pytest.approx(16 / 3.5, rel=0.03)
    assert min(box[0] for box in boxes(browser, "#speed .bar i")) > 2


def test_the_drawing_is_there(browser: Any, page: Page) -> None:
    browser.open(page("whole"))
    wide, narrow = boxes(browser, ".kl-wide")[0], boxes(browser, ".kl-narrow")[0]
    assert wide[0] > 500
    assert wide[1] > 250
    assert narrow == [0, 0]
    texts = browser.ask("return [...document.querySelectorAll('.kl-wide text')].map(e => e.textContent)")
    assert {str(pair) for pair in PAIRS if pair != F16} <= set(texts)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["whole", "models", "crash in the middle", "everything deferred", "hostile"])
def test_every_text_has_contrast(browser: Any, page: Page, name: str, *, dark: bool) -> None:
    browser.open(page(name), dark=dark)
    browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    back = browser.ask("return getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(18, 21, 24)" if dark else "rgb(246, 246, 243)")
    found = browser.ask(CONTRAST)
    assert found["seen"] > 40
    assert found["poor"] == []


def test_the_switch_overrules_the_system(browser: Any, page: Page) -> None:
    back = "return getComputedStyle(document.body).backgroundColor"
    browser.open(page("usual"), dark=True)
    browser.click("label:has(#theme-light)")
    assert browser.ask(back) == "rgb(246, 246, 243)"
    browser.click("label:has(#theme-dark)")
    assert browser.ask(back) == "rgb(18, 21, 24)"
    browser.open(page("usual"))
    browser.click("label:has(#theme-dark)")
    assert browser.ask(back) == "rgb(18, 21, 24)"


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone_nothing_leaves_the_screen(browser: Any, page: Page, name: str) -> None:
    browser.open(page(name), width=375)
    browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.ask("return document.documentElement.scrollWidth") <= 375
    if name == "whole":
        assert boxes(browser, ".kl-wide")[0] == [0, 0]
        assert boxes(browser, ".kl-narrow")[0][0] > 300
        assert min(box[0] for box in boxes(browser, ".heat td")) > 40


@pytest.mark.parametrize("name", ["whole", "models", "twelve pairs", "everything deferred"])
def test_it_prints_light(browser: Any, page: Page, name: str) -> None:
    browser.open(page(name), dark=True)
    paper = base64.b64decode(browser.tell("Page.printToPDF", printBackground=False)["data"])
    assert paper.startswith(b"%PDF-")
    assert len(paper) < 1_000_000, "gradients and shadows are printed as large bitmaps"
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") >= 1
    browser.tell(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.ask("return getComputedStyle(document.body).color") == "rgb(21, 24, 28)"
    assert browser.ask("return getComputedStyle(document.querySelector('.theme')).display") == "none"


def test_paper_shows_everything_but_the_answers(browser: Any, page: Page) -> None:
    browser.open(page("whole"))
    browser.tell("Emulation.setEmulatedMedia", media="print")
    assert min(box[1] for box in boxes(browser, "details:not(.answers) li, details:not(.answers) td")) > 5
    assert {tuple(box) for box in boxes(browser, "details.answers")} == {(0, 0)}
    assert boxes(browser, "#answers .print-only")[0][1] > 5


def test_the_recommended_command_can_be_read_and_copied(browser: Any, page: Page) -> None:
    browser.open(page("whole"))
    command = browser.ask("return document.querySelector('#verdict .command').innerText")
    assert command.startswith("tqforge run -- llama-server -m synthetic.gguf -c 8192 -ctk ")
    assert boxes(browser, "#verdict .command")[0][1] > 20


def test_answers_are_folded_and_unfold(browser: Any, page: Page) -> None:
    browser.open(page("usual"))
    assert browser.ask("return [...document.querySelectorAll('details')].filter(d => d.open).length") == 0
    browser.click("details.answers summary")
    assert boxes(browser, "details.answers[open] .raw td")[0][1] > 10


def test_hostile_answers_stay_text(browser: Any, page: Page) -> None:
    browser.open(page("hostile"))
    browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    texts = browser.ask("return [...document.querySelectorAll('.raw td:last-child')].map(e => e.innerText)")
    assert texts[0].startswith("<script>alert('x')</script>")
    assert browser.ask("return document.querySelectorAll('img, script').length") == 0
    assert len(texts[3]) < 5000
    assert "#answers" not in browser.driver.title
    assert browser.driver.title == "synthetic.gguf: tqforge verification"


def test_every_table_and_drawing_has_a_name(browser: Any, page: Page) -> None:
    browser.open(page("whole"))
    nameless = """const all = (selector) => [...document.querySelectorAll(selector)];
        return all('table').filter(t => !t.caption && !t.closest('[aria-label]')).length
        + all('svg').filter(s => !s.querySelector('title')).length
        + all('section').filter(s => !s.getAttribute('aria-labelledby')).length"""
    assert browser.ask(nameless) == 0
    assert browser.ask("return document.querySelectorAll('th:not([scope])').length") == 0
