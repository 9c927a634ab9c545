from __future__ import annotations

import pytest

from tqforge.cli.options import complete_base, complete_pair


def test_bases_complete() -> None:
    assert "upstream" in complete_base("")
    assert complete_base("up") == ["upstream"]
    assert complete_base("nothing") == []


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("q8", ["q8_0"]),
        ("tq", ["tq3_0"]),
        ("q8_0/tq", ["q8_0/tq3_0"]),
        ("f16,q8_0/q4", ["f16,q8_0/q4_1", "f16,q8_0/q4_0"]),
        ("zz", []),
    ],
)
def test_pairs_complete(typed: str, offered: list[str]) -> None:
    assert complete_pair(typed) == offered
