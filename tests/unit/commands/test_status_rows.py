"""The lines of `tqforge status` for every state of series, checkout and builds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tqforge.build.builder import Built
from tqforge.build.stamp import LoadCheck, Stamp
from tqforge.build.status import BuildState, CheckoutState, SeriesState
from tqforge.commands.status import _build_rows, _checkout_words, _series_words

TREE = "a" * 40
SERIES = SeriesState(patches=("0001-x.patch", "0002-y.patch"), sha256="5" * 64, tree=TREE)
CHECKOUT = CheckoutState(path=Path("/ws/git/upstream"), exists=True, tree=TREE, applied=2)
PASSED = LoadCheck(status="passed", tokens=8, pair="tq3_0/tq3_0")


def build(load: LoadCheck = PASSED, *, native: bool = True, **changes: Any) -> BuildState:
    stamp = Stamp(
        base="upstream",
        commit="c" * 40,
        tree=TREE,
        series_sha256="5" * 64,
        checkout="/ws/git/upstream",
        preset="linux-x86_64-cpu",
        metal=False,
        native=native,
        arguments=(),
        targets=("llama-server",),
        compilers={},
        tools={},
        version="b1-tqforge-aaaaaaaaaaaa",
        load=load,
    )
    state = BuildState(
        built=Built(folder=Path("/ws/build"), stamp=stamp), current=True, accepts=("f16", "tq3_0"), knows=True
    )
    return replace(state, **changes)


def texts(state: BuildState) -> list[str]:
    return [text for _, text in _build_rows(state)]


def test_a_locked_series() -> None:
    assert _series_words(SERIES) == f"2 patches, tree {TREE}"


def test_a_series_that_is_not_locked_or_does_not_match_its_lock() -> None:
    assert _series_words(replace(SERIES, tree="")) == "2 patches, not in the lock"
    assert _series_words(replace(SERIES, problem="x.patch changed.")).endswith(" (x.patch changed.)")


@pytest.mark.parametrize(
    ("changes", "locked", "words"),
    [
        ({}, TREE, f"tree {TREE} at /ws/git/upstream, 2 patches, as locked, clean"),
        ({}, "b" * 40, f"tree {TREE} at /ws/git/upstream, 2 patches, not the locked tree, clean"),
        ({}, "", f"tree {TREE} at /ws/git/upstream, 2 patches, clean"),
        ({"changes": (" M a.c", "?? b")}, TREE, "as locked, 2 uncommitted changes"),
        ({"exists": False}, TREE, "none yet at /ws/git/upstream"),
        ({"interrupted": True, "changes": (" M a.c",)}, TREE, "an apply was interrupted; `tqforge build` repairs it"),
    ],
)
def test_checkout(changes: dict[str, Any], locked: str, words: str) -> None:
    assert _checkout_words(replace(CHECKOUT, **changes), replace(SERIES, tree=locked)).endswith(words)


def test_a_build_of_this_checkout() -> None:
    assert texts(build()) == [
        "linux-x86_64-cpu, native, b1-tqforge-aaaaaaaaaaaa, of this checkout",
        "load check passed (8 tokens, tq3_0/tq3_0)",
        "accepts f16, tq3_0; the library has tq3_0",
    ]


def test_an_old_build_says_what_to_run() -> None:
    assert texts(build(current=False))[0].endswith("out of date (tree aaaaaaaaaaaa): run `tqforge build`")


def test_a_portable_build_is_called_portable() -> None:
    assert "portable" in texts(build(native=False))[0]


def test_a_skipped_load_check_gives_its_reason() -> None:
    assert texts(build(LoadCheck(status="skipped", reason="no model: offline")))[1] == "no model: offline"


def test_a_build_without_the_type() -> None:
    assert texts(build(accepts=(), knows=False))[2] == "accepts no cache types; the library has no tq3_0"


def test_a_build_that_cannot_be_run_does_not_claim_types() -> None:
    assert texts(build(problem="exit status 127"))[2:] == ["cannot be run: exit status 127"]
