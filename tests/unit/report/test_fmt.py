from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tqforge.report import fmt
from tqforge.report.schema.base import Interval


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (0.889, "89%"),
        (0.9996, "99.96%"),
        (0.0004, "0.04%"),
        (None, fmt.NONE),
        (math.nan, fmt.NONE),
    ],
)
def test_percent_never_rounds_to_all_or_nothing(share: float | None, text: str) -> None:
    assert fmt.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.28, "0.280"),
        (0.0044, "0.0044"),
        (12.34, "12.3"),
        (1556.0, "1,556"),
        (1e-9, "<0.000001"),
        (-0.002, "-0.0020"),
        (math.inf, fmt.NONE),
        (None, fmt.NONE),
    ],
)
def test_kl_without_exponents(value: float | None, text: str) -> None:
    assert fmt.kl(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (1023, "1,023 bytes"), (20643840, "19.7 MiB"), (24 << 30, "24.0 GiB"), (None, fmt.NONE)],
)
def test_sizes(number: float | None, text: str) -> None:
    assert fmt.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0.4 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
        (math.nan, fmt.NONE),
        (-1, fmt.NONE),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert fmt.duration(seconds) == text


@pytest.mark.parametrize(
    ("items", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_listing(items: list[str], text: str) -> None:
    assert fmt.listing(items) == text


def test_a_range_without_figures_is_a_dash() -> None:
    assert fmt.percent_range(None) == fmt.kl_range(Interval(value=0, low=math.nan, high=1)) == fmt.NONE


def test_nothing_invisible_stays() -> None:
    seen = fmt.visible("a\u202eb\x1b[31m\x00\ud800\u200d\r\nc\x7f\u2028")
    assert seen == "a<U+202E>b<U+001B>[31m<U+0000><U+D800><U+200D>\nc<U+007F><U+2028>"


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_visible_text_can_be_written_and_holds_no_control(text: str) -> None:
    seen = fmt.visible(text)
    seen.encode("utf-8")
    assert not [char for char in seen if (ord(char) < 0x20 and char not in "\n\t") or 0x7F <= ord(char) < 0xA0]


def test_a_line_is_one_line() -> None:
    assert fmt.line(" a\n b\t c ") == "a b c"
    assert fmt.line("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("the end", "The end"),
        ("needle, then speed", "Needle, then speed"),
        ("tq3_0/tq3_0 fell", "tq3_0/tq3_0 fell"),
        ("", ""),
    ],
)
def test_a_sentence_leaves_names_alone(text: str, seen: str) -> None:
    assert fmt.sentence(text) == seen


@pytest.mark.parametrize(
    ("number", "text"), [(16 << 30, "16 GiB"), (1235 << 20, "1.21 GiB"), (323 << 20, "323 MiB"), (500, "500 bytes")]
)
def test_budgets_of_memory(number: int, text: str) -> None:
    assert fmt.memory(number) == text


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("2026-12-01T02:23:22+00:00", "2026-12-01 02:23 UTC"),
        ("2026-12-01T02:23:22Z", "2026-12-01 02:23 UTC"),
        ("2026-12-01T01:30:00+02:00", "2026-11-30 23:30 UTC"),
        ("2026-12-01T02:23:22", "2026-12-01T02:23:22"),
        ("yesterday", "yesterday"),
    ],
)
def test_times_are_utc_or_left_alone(stamp: str, text: str) -> None:
    assert fmt.time(stamp) == text
