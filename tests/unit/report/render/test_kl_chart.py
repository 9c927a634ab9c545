from __future__ import annotations

import re

import pytest
from synthetic_parts import PAIRS, TWELVE, interval
from synthetic_stages import quality_row

from tqforge.core.pair import F16, Pair
from tqforge.report.render import kl_chart
from tqforge.report.schema.rows import QualityRow

Q8_0, Q4_0 = Pair.both("q8_0"), Pair.both("q4_0")


def rows(noise: float = 0.0002) -> list[QualityRow]:
    floor = quality_row(F16, kl=interval(noise), is_floor=True)
    return [floor, *(quality_row(pair) for pair in PAIRS if pair != F16)]


def texts(drawing: str) -> dict[str, float]:
    """Every text of a drawing and its height."""
    return {text: float(y) for y, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', drawing)}


def test_every_pair_has_a_label_and_the_noise_a_line() -> None:
    drawing = kl_chart.kl_chart(rows(), "k")
    assert {str(pair) for pair in PAIRS if pair != F16} <= set(texts(drawing))
    assert "noise: f16 against itself" in texts(drawing)


@pytest.mark.parametrize("noise", [0.0040, 0.0044, 0.0048])
def test_a_label_keeps_off_the_noise_line(noise: float) -> None:
    drawing = kl_chart.kl_chart(rows(noise), "k")
    line = float(re.findall(r'<path d="M [\d.]+ ([\d.]+) [^"]*"[^>]*stroke: var\(--floor\)', drawing)[0])
    label = texts(drawing)["q8_0/q8_0"]  # the baseline; the letters are 6 to 7 points high
    assert not label - 7 < line < label + 1


def test_thresholds_are_named_where_they_are_in_the_picture() -> None:
    names = {"close to f16", "clearly different", "unusable"}
    assert names & set(texts(kl_chart.kl_chart([quality_row(Q8_0, kl=interval(0.0044))], "k"))) == set()
    wide = [quality_row(Q8_0, kl=interval(0.0044)), quality_row(Q4_0, kl=interval(2.0))]
    assert names <= set(texts(kl_chart.kl_chart(wide, "k")))


def test_texts_use_the_font_of_the_page() -> None:
    drawing = kl_chart.kl_chart(rows(), "k")
    assert "system-ui" in drawing
    assert "DejaVu" not in drawing


def test_ids_of_two_drawings_on_a_page_differ() -> None:
    first, second = (set(re.findall(r'\bid="([^"]+)"', kl_chart.kl_chart(rows(), name))) for name in ("a", "b"))
    assert first
    assert not first & second


def test_rows_that_a_logarithm_cannot_show_are_left_out() -> None:
    zero, nan = interval(0.0), interval(float("nan"))
    hidden = [quality_row(Q4_0, kl=zero), quality_row(Q4_0, kl=nan), quality_row(F16, is_floor=True)]
    assert kl_chart.drawable([*hidden, quality_row(Q8_0)]) == [quality_row(Q8_0)]
    assert kl_chart.kl_chart(hidden, "k") == ""


def test_a_pair_without_rotation_is_tied_to_itself() -> None:
    twice = [quality_row(Q8_0), quality_row(Q8_0, kl=interval(0.02), unrotated=True)]
    drawing = kl_chart.kl_chart(twice, "k")
    assert "rotation switched off" in texts(drawing)
    assert len(re.findall(">q8_0/q8_0</text>", drawing)) == 1


def test_twelve_labels_have_twelve_places() -> None:
    drawing = kl_chart.kl_chart([quality_row(pair) for pair in TWELVE if pair != F16], "k")
    places = re.findall(r' x="([\d.]+)" y="([\d.]+)"[^>]*>\w+/\w+</text>', drawing)
    assert len(places) == len(set(places)) == len(TWELVE) - 1
