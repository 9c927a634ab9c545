"""The pair as a value, as a field of a record and as a JSON string; the lists of cache types."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from tqforge.cli.options import complete_pair
from tqforge.core import tq3_0
from tqforge.core.cache_types import CACHE_TYPES, TQ3_0, TQ3_0_BLOCK, TQ3_0_BLOCK_BYTES, UNQUANTIZED
from tqforge.core.pair import F16, Pair


class Row(BaseModel):
    pair: Pair
    other: Pair | None = None


def test_one_name_stands_for_both_sides() -> None:
    assert Pair.parse("tq3_0") == Pair.both("tq3_0") == Pair("tq3_0", "tq3_0")
    assert Pair.parse(" q8_0 / tq3_0 ") == Pair("q8_0", "tq3_0")
    assert str(Pair("q8_0", "tq3_0")) == "q8_0/tq3_0"
    assert Pair.parse(str(F16)) == F16


@pytest.mark.parametrize("text", ["", "a/b/c", "/x", "x/", "<b>x</b>", "a b", "q8_0/tq3_0\n/", "x" * 25, "\u202eq8_0"])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="K/V pair"):
        Pair.parse(text)


@pytest.mark.parametrize(
    ("text", "mixed", "ours"),
    [
        ("f16", False, False),
        ("tq3_0", False, True),
        ("q8_0/tq3_0", True, True),
        ("tq3_0/f16", True, True),
        ("q8_0/q4_0", True, False),
        ("xtq3_0/q8_0", True, False),
    ],
)
def test_what_a_pair_is_made_of(text: str, mixed: bool, ours: bool) -> None:
    pair = Pair.parse(text)
    assert (pair.is_mixed, pair.has_tq3_0) == (mixed, ours)


def test_a_record_holds_the_value_and_writes_the_string() -> None:
    row = Row(pair=Pair("q8_0", "tq3_0"))
    assert row.model_dump(mode="json") == {"pair": "q8_0/tq3_0", "other": None}
    assert Row.model_validate_json(row.model_dump_json()) == row
    assert isinstance(Row.model_validate({"pair": "f16"}).pair, Pair)
    assert Row.model_json_schema(mode="serialization")["properties"]["pair"]["type"] == "string"
    for bad in ("a/b/c", "<script>", 5, None):
        with pytest.raises(ValidationError):
            Row.model_validate({"pair": bad})


def test_one_list_of_cache_types() -> None:
    assert len(CACHE_TYPES) == len(set(CACHE_TYPES)) == 10
    assert CACHE_TYPES[-1] == TQ3_0
    assert set(UNQUANTIZED) < set(CACHE_TYPES)
    assert set(complete_pair("")) == set(CACHE_TYPES)
    assert (tq3_0.BLOCK, tq3_0.BLOCK_BYTES) == (TQ3_0_BLOCK, TQ3_0_BLOCK_BYTES)
