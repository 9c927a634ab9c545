"""The order of a proof, on a runner that compiles nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from tqforge.core.values import AppliedPatch
from tqforge.proof import schedule
from tqforge.proof.record import ProofOutcome
from tqforge.proof.results import GuardResult, GuardStatus
from tqforge.proof.runner import ProofRunner
from tqforge.proof.schedule import METAL_TESTS, PREFIX_TARGETS, PREFIX_TEST, Item, Schedule
from tqforge.proof.without import BEFORE, LEFT_OUT, Variant
from tqforge.series.patchfile import FileDiff, PatchFile
from tqforge.series.trailers import Guard

PASSED, FAILED, BUILD_FAILED = GuardStatus.PASSED, GuardStatus.FAILED, GuardStatus.BUILD_FAILED
Answer = Callable[[str, Guard], GuardStatus]


def item(number: int, name: str, *paths: str, guards: tuple[str, ...] = ("test-x",)) -> Item:
    applied = AppliedPatch(name=f"{name}.patch", sha256="s", patch_id="p", commit=f"c{number}", tree=f"tree-{name}")
    files = tuple(FileDiff((f"diff --git a/{path} b/{path}", f"+++ b/{path}")) for path in paths or ("src/a.c",))
    return Item(number, applied, PatchFile((), files, body=("text", "", *(f"Guard: {guard}" for guard in guards))))


@dataclass
class Runner:
    """Answers by a function, and remembers what it was asked."""

    answer: Answer
    cached: dict[tuple[str, str], GuardResult] = field(default_factory=dict)
    repository: None = None
    calls: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)

    def recorded(self, tree: str, _targets: tuple[str, ...], guard: Guard) -> GuardResult | None:
        return self.cached.get((tree, str(guard)))

    def run(self, tree: str, targets: tuple[str, ...], guard: Guard) -> GuardResult:
        self.calls.append((tree, targets, str(guard)))
        status = self.answer(tree, guard)
        return GuardResult(tree=tree, test=str(guard), targets=targets, status=status, detail=f"{status} on {tree}")


@dataclass
class Listener:
    steps: list[str] = field(default_factory=list)
    recorded: list[bool] = field(default_factory=list)

    def begin(self, label: str) -> None:
        self.steps.append(label)

    def end(self, _result: GuardResult, *, recorded: bool) -> None:
        self.recorded.append(recorded)


class Without:
    """Stands for LeaveOneOut: the tree without patch n is `without-n`, the one before it `before-n`."""

    blockers: tuple[str, ...] = ()

    def __init__(
        self, _repository: object, applied: list[AppliedPatch], tests: frozenset[int], _scratch: object
    ) -> None:
        self.applied, self.tests = applied, tests
        Without.last = self

    last: Without

    def without(self, number: int) -> Variant:
        return Variant(f"without-{number}", LEFT_OUT, self.blockers)

    def before(self, number: int, blockers: tuple[str, ...] = ()) -> Variant:
        return Variant(f"before-{number}", BEFORE, blockers)


@pytest.fixture(autouse=True)
def _no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LeaveOneOut", Without)


def plan(items: list[Item], answer: Answer, **cached: GuardResult) -> tuple[Schedule, Runner, Listener]:
    runner, listener = Runner(answer, {(item.tree, item.test): item for item in cached.values()}), Listener()
    return Schedule(items, cast(ProofRunner, runner), listener), runner, listener


def fails_without(tree: str, _guard: Guard) -> GuardStatus:
    return FAILED if tree.startswith(("without", "before")) else PASSED


def test_prefixes_build_all_targets_and_run_the_cheap_test() -> None:
    items = [item(0, "one"), item(1, "two")]
    order, runner, listener = plan(items, fails_without)
    found = order.prefixes(items)
    assert [(row.patch, row.result.status) for row in found] == [("one", PASSED), ("two", PASSED)]
    assert runner.calls == [(f"tree-{name}", PREFIX_TARGETS, str(PREFIX_TEST)) for name in ("one", "two")]
    assert listener.steps == ["prefix up to one: test-quantize-fns", "prefix up to two: test-quantize-fns"]


def test_a_metal_patch_also_runs_the_metal_tests() -> None:
    metal = item(0, "metal", "ggml/src/ggml-metal/x.metal")
    order, runner, _ = plan([metal], fails_without)
    assert len(order.prefixes([metal])) == 1 + len(METAL_TESTS)
    assert [call[1] for call in runner.calls[1:]] == [("test-backend-ops",)] * len(METAL_TESTS)
    assert schedule.length([metal], prefixes=True, guards=False) == 1 + len(METAL_TESTS)


def test_the_number_of_steps() -> None:
    items = [item(0, "one", guards=("test-x", "test-y")), item(1, "two")]
    assert schedule.length(items, prefixes=True, guards=True) == 2 + 2 * 3
    assert schedule.length(items, prefixes=False, guards=True) == 6
    assert schedule.length(items, prefixes=True, guards=False) == 2


def test_all_guards_run_on_the_whole_series_before_the_first_patch_is_left_out() -> None:
    items = [item(0, "one"), item(1, "two", guards=("test-y a",)), item(2, "tests", "tests/t.cpp", guards=())]
    order, runner, listener = plan(items, fails_without)
    found = order.guards(items)
    assert [call[0] for call in runner.calls] == ["tree-tests", "tree-tests", "without-0", "without-1"]
    assert [call[1] for call in runner.calls] == [("test-x",), ("test-y",), ("test-x",), ("test-y",)]
    assert [(row.patch, row.guard, row.outcome, row.how) for row in found] == [
        ("one", "test-x", ProofOutcome.PROVEN, LEFT_OUT),
        ("two", "test-y a", ProofOutcome.PROVEN, LEFT_OUT),
    ]
    assert listener.steps == ["one: test-x", "two: test-y a", "without one: test-x", "without two: test-y a"]
    assert Without.last.tests == {2}


def test_a_selected_patch_is_left_out_of_the_whole_series() -> None:
    items = [item(0, "one"), item(1, "two")]
    order, runner, _ = plan(items, fails_without)
    order.guards(items[:1])
    assert [call[0] for call in runner.calls] == ["tree-two", "without-0"]
    assert len(Without.last.applied) == 2


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (FAILED, ProofOutcome.BROKEN),
        (BUILD_FAILED, ProofOutcome.BROKEN),
        (GuardStatus.NO_CASES, ProofOutcome.BROKEN),
        (GuardStatus.SKIPPED, ProofOutcome.SKIPPED),
    ],
)
def test_a_guard_that_does_not_pass_is_not_run_without_its_patch(status: GuardStatus, outcome: ProofOutcome) -> None:
    items = [item(0, "one")]
    order, runner, listener = plan(items, lambda *_: status)
    [row] = order.guards(items)
    assert (row.outcome, row.without_patch, row.note) == (outcome, None, f"{status} on tree-one")
    assert len(runner.calls) == 1
    assert "not run" in listener.steps[-1]


def test_a_useless_guard() -> None:
    items = [item(0, "one")]
    [row] = plan(items, lambda *_: PASSED)[0].guards(items)
    assert row.outcome is ProofOutcome.USELESS


def answers(**by_tree: GuardStatus) -> Answer:
    return lambda tree, _guard: by_tree.get(tree.replace("-", "_"), PASSED)


def test_a_tree_that_does_not_compile_is_replaced_by_the_series_before_the_patch() -> None:
    items = [item(0, "one"), item(1, "two")]
    order, runner, _ = plan(items, answers(without_0=BUILD_FAILED, before_0=FAILED))
    [row] = order.guards(items[:1])
    assert [call[0] for call in runner.calls] == ["tree-two", "without-0", "before-0"]
    assert (row.outcome, row.how) == (ProofOutcome.NEEDED, BEFORE)
    assert row.needed_by == ("later patches (does not compile on without-0)",)


@pytest.mark.parametrize("status", [PASSED, BUILD_FAILED, GuardStatus.SKIPPED])
def test_the_series_before_the_patch_only_counts_when_the_guard_fails_there(status: GuardStatus) -> None:
    items = [item(0, "one")]
    [row] = plan(items, answers(without_0=BUILD_FAILED, before_0=status))[0].guards(items)
    assert (row.outcome, row.how) == (ProofOutcome.PROVEN, LEFT_OUT)
    assert row.without_patch
    assert row.without_patch.tree == "without-0"


def test_the_same_tree_is_not_built_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Without, "before", lambda self, number, blockers: Variant(f"without-{number}", BEFORE, blockers)
    )
    items = [item(0, "one")]
    order, runner, _ = plan(items, answers(without_0=BUILD_FAILED))
    order.guards(items)
    assert [call[0] for call in runner.calls] == ["tree-one", "without-0"]


def test_later_patches_that_need_it_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Without, "blockers", ("two",))
    items = [item(0, "one"), item(1, "two")]
    [row] = plan(items, fails_without)[0].guards(items[:1])
    assert (row.outcome, row.needed_by) == (ProofOutcome.NEEDED, ("two",))


def test_a_recorded_result_is_not_run_again() -> None:
    items = [item(0, "one")]
    known = GuardResult(tree="tree-one", test="test-x", status=PASSED)
    order, runner, listener = plan(items, fails_without, known=known)
    [row] = order.guards(items)
    assert row.with_patch is known or row.with_patch == known
    assert [call[0] for call in runner.calls] == ["without-0"]
    assert listener.recorded == [True, False]


def test_what_an_item_says_about_its_patch() -> None:
    one = item(0, "one", "tests/a.cpp", "tests/b.cpp", guards=("test-x", "test-y z"))
    assert (one.title, one.only_tests) == ("one", True)
    assert [str(guard) for guard in one.guards] == ["test-x", "test-y z"]
    mixed: Any = item(0, "two", "tests/a.cpp", "src/b.cpp")
    assert not mixed.only_tests
