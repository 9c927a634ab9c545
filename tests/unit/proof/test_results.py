"""The cache of guard results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tqforge.proof.results import GuardResult, GuardStatus, ResultCache

TREE = "a" * 40


def result(status: GuardStatus = GuardStatus.PASSED, targets: tuple[str, ...] = ("x",)) -> GuardResult:
    return GuardResult(tree=TREE, test="test-x", targets=targets, status=status, detail="d", seconds=1.5)


def test_a_result_is_found_by_tree_targets_and_test(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "results.json", "cc 12")
    assert cache.get(TREE, ("x",), "test-x") is None
    assert cache.add(result()) == cache.get(TREE, ("x",), "test-x")
    for tree, targets, test in (("b" * 40, ("x",), "test-x"), (TREE, ("y",), "test-x"), (TREE, ("x",), "test-y")):
        assert cache.get(tree, targets, test) is None


def test_a_second_run_reads_what_the_first_one_wrote(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "results.json"
    first = ResultCache(path, "cc 12")
    first.add(result(GuardStatus.BUILD_FAILED))
    first.add(result(GuardStatus.NO_CASES, ("y",)))
    second = ResultCache(path, "cc 12")
    found = second.get(TREE, ("x",), "test-x")
    assert found == result(GuardStatus.BUILD_FAILED)
    assert found.seconds == 1.5
    assert second.get(TREE, ("y",), "test-x") == result(GuardStatus.NO_CASES, ("y",))


def test_results_of_another_toolchain_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    ResultCache(path, "cc 12").add(result())
    assert ResultCache(path, "cc 13").get(TREE, ("x",), "test-x") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"toolchain": "cc 12"}',
        '{"toolchain": "cc 12", "results": [{"tree": 1}]}',
        '{"toolchain": "cc 12", "results": [{"tree": "t", "test": "x", "status": "green"}]}',
    ],
)
def test_an_unreadable_cache_is_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    assert ResultCache(path, "cc 12").get("t", (), "x") is None


def test_failures() -> None:
    assert [status for status in GuardStatus if status.is_failure] == [GuardStatus.FAILED, GuardStatus.BUILD_FAILED]
