"""The series without one patch, in real git."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import Toy, git, run

from tqforge.adapters.git import Repository
from tqforge.core.values import Checkout
from tqforge.proof.without import BEFORE, LEFT_OUT, REVERSED, LeaveOneOut


@pytest.fixture
def checkout(toy: Toy) -> Checkout:
    """one; two; three on top of one; a patch of tests; four, which changes the line of `two`."""
    toy.three()
    toy.add_patch("tests", {"tests/t.c": ("", "int test;\n")})
    toy.add_patch("four", {"src/cache.cpp": ("cache line twenty\n", "cache line four\n")})
    return run(toy)


def others(checkout: Checkout, scratch: Path) -> LeaveOneOut:
    return LeaveOneOut(Repository(checkout.path), checkout.patches, frozenset({3}), scratch)


def show(checkout: Checkout, tree: str, path: str) -> str:
    return git(checkout.path, "show", f"{tree}:{path}")


def test_a_patch_that_nothing_depends_on_is_left_out(checkout: Checkout, tmp_path: Path) -> None:
    found = others(checkout, tmp_path).without(2)
    assert (found.how, found.blockers) == (LEFT_OUT, ())
    text = show(checkout, found.tree, "src/quants.c")
    assert "added_one" in text
    assert "added_three" not in text
    assert "cache line four" in show(checkout, found.tree, "src/cache.cpp")


def test_the_last_patch_is_left_out(checkout: Checkout, tmp_path: Path) -> None:
    found = others(checkout, tmp_path).without(4)
    assert (found.tree, found.how) == (checkout.patches[3].tree, LEFT_OUT)


def test_a_patch_that_a_later_one_changes_falls_back_to_the_series_before_it(
    checkout: Checkout, tmp_path: Path
) -> None:
    found = others(checkout, tmp_path).without(1)
    assert (found.how, found.blockers) == (BEFORE, ("four",))
    assert "cache line 20" in show(checkout, found.tree, "src/cache.cpp")
    assert "added_three" not in show(checkout, found.tree, "src/quants.c")
    assert show(checkout, found.tree, "tests/t.c") == "int test;"  # the tests that come later are kept


def test_the_series_before_a_patch_is_the_base_for_the_first_one(checkout: Checkout, tmp_path: Path) -> None:
    found = others(checkout, tmp_path).before(0, ("why",))
    assert (found.how, found.blockers) == (BEFORE, ("why",))
    assert "added_one" not in show(checkout, found.tree, "src/quants.c")
    assert show(checkout, found.tree, "tests/t.c") == "int test;"


def test_a_patch_is_reversed_when_a_later_one_cannot_be_merged_without_it(toy: Toy, tmp_path: Path) -> None:
    """`back` undoes a neighbour of `one`: it does not merge without `one`, but `one` can be reversed after it."""
    toy.add_patch("one", {"src/quants.c": ("int line_10;\n", "int line_ten;\n")})
    toy.add_patch("two", {"src/quants.c": ("int line_ten;\n", "int line_ten;\nint added;\n")})
    toy.add_patch("back", {"src/quants.c": ("int line_ten;\nint added;\n", "int line_ten;\n")})
    checkout = run(toy)
    found = LeaveOneOut(Repository(checkout.path), checkout.patches, frozenset(), tmp_path).without(0)
    assert (found.how, found.blockers) == (REVERSED, ())
    assert found.tree == toy.base.tree


def test_nothing_is_checked_out_or_moved(checkout: Checkout, tmp_path: Path) -> None:
    others(checkout, tmp_path).without(1)
    assert git(checkout.path, "rev-parse", "HEAD") == checkout.head
    assert git(checkout.path, "status", "--porcelain") == ""
    assert others(checkout, tmp_path).trees == [
        git(checkout.path, "rev-parse", f"{checkout.base_commit}^{{tree}}"),
        *(patch.tree for patch in checkout.patches),
    ]
