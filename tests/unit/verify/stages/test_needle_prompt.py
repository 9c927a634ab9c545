from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tqforge.errors import ContextLengthError
from tqforge.verify import corpus
from tqforge.verify.stages.needle import grid
from tqforge.verify.stages.needle.prompt import Frame, Hay, compose, sentences

FRAME = Frame(head=(1, 2, 3), tail=(7, 8, 9, 10))
NEEDLE = (100, 101, 102, 103, 104)


def fake_tokenize(parts: Sequence[str]) -> list[list[int]]:
    """A token per word."""
    return [[1000 + len(word) for word in part.split()] for part in parts]


HAY = Hay.of(corpus.hay().content, fake_tokenize)


def test_sentences_join_to_the_text() -> None:
    text = corpus.hay().content.strip()
    assert "".join(sentences(text)) == text
    assert HAY.cuts[-1] == len(HAY.tokens)


@given(st.integers(64, 4000), st.floats(0, 1))
@settings(deadline=None)
def test_every_prompt_has_exactly_its_length(length: int, depth: float) -> None:
    prompt = compose(HAY, FRAME, NEEDLE, length, depth)
    assert prompt.length == length
    assert prompt.tokens[:3] == FRAME.head
    assert prompt.tokens[-4:] == FRAME.tail
    assert prompt.tokens[prompt.shared : prompt.shared + 5] == NEEDLE
    place = prompt.shared - len(FRAME.head)
    assert place in HAY.cuts
    assert abs(place - depth * (length - 12)) <= 80


def test_the_hay_before_the_needle_is_the_same_for_all_lengths() -> None:
    short, long = compose(HAY, FRAME, NEEDLE, 256, 0.5), compose(HAY, FRAME, NEEDLE, 1024, 0.5)
    assert long.tokens[: short.shared] == short.tokens[: short.shared]


def test_a_needle_that_does_not_fit_is_refused_with_the_least_length() -> None:
    with pytest.raises(ContextLengthError, match="12 tokens") as caught:
        compose(HAY, FRAME, NEEDLE, 20, 0.5)
    assert "28" in caught.value.remedy
    with pytest.raises(ContextLengthError, match="ships with tqforge"):
        compose(HAY, FRAME, NEEDLE, 100_000, 0.5)


def test_the_plan_evaluates_a_shared_prefix_once_and_gives_every_prompt_whole() -> None:
    asked = grid.questions(HAY, FRAME, {0: NEEDLE, 1: NEEDLE[:-1]}, [256, 512], [0.1, 0.5, 0.9])
    assert len(asked) == 2 * 2 * 3 + 2 * 2
    trunk: tuple[int, ...] = ()
    plan = grid.shared_plan(asked)
    for evaluation in plan:
        trunk += evaluation.trunk
        assert trunk + evaluation.branch == evaluation.question.prompt.tokens
    shared, fresh = (sum(e.cost for e in p) for p in (plan, grid.fresh_plan(asked)))
    assert shared < 0.75 * fresh
    assert {e.question for e in plan} == set(asked)


def test_prompts_without_a_needle_are_as_long() -> None:
    asked = grid.questions(HAY, FRAME, {0: NEEDLE}, [256], [0.5])
    assert [question.kind for question in asked] == ["needle", "no-needle"]
    assert [question.prompt.length for question in asked] == [256, 256]


def test_the_texts_are_ours_long_enough_and_hold_no_fact() -> None:
    hay, quality = corpus.hay().content, corpus.load("quality.txt").content
    assert len(hay.split()) > 9000
    assert len(quality.split()) > 2000
    paragraphs = [line for line in hay.splitlines() if line]
    assert len(set(paragraphs)) == len(paragraphs)
    assert "secret project" not in hay
    assert "access key" not in hay
    assert not set(hay.split()) & {"FROSTBLOCK-7", "VcMYB4"}
    assert hay.isascii()
    assert quality.isascii()
    assert not set(paragraphs) & set(quality.splitlines())
