"""What a proof comes to, and how the record of a part joins an earlier one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tqforge.base.pins import load_base
from tqforge.proof.record import DEFERRED, PROVEN, Proof, Report, document, merged
from tqforge.proof.runner import Seen, Verdict


def seen(verdict: Verdict, tree: str = "a" * 40, seconds: float = 0.0) -> Seen:
    return Seen(tree=tree, test="test-x", verdict=verdict, seconds=seconds)


@pytest.mark.parametrize(
    ("with_it", "without_it", "verdict", "fails"),
    [
        (Verdict.GREEN, Verdict.RED, PROVEN, False),
        (Verdict.GREEN, Verdict.RED_BUILD, PROVEN, False),
        (Verdict.GREEN, Verdict.GREEN, "the guard stays green without the patch", True),
        (Verdict.GREEN, Verdict.NO_CASES, "the guard stays green without the patch", True),
        (Verdict.GREEN, Verdict.DEFERRED, DEFERRED, False),
        (Verdict.GREEN, None, DEFERRED, False),
        (Verdict.DEFERRED, None, DEFERRED, False),
        (Verdict.RED, None, "with the patch: red", True),
        (Verdict.NO_CASES, None, "with the patch: ran no case", True),
    ],
)
def test_verdicts(with_it: Verdict, without_it: Verdict | None, verdict: str, fails: bool) -> None:
    proof = Proof("p", "g", seen(with_it), seen(without_it) if without_it else None)
    assert (proof.verdict, proof.fails) == (verdict, fails)


def report(*titles: str, tree: str = "b" * 40, prefix: Verdict = Verdict.GREEN) -> Report:
    proofs = tuple(
        Proof(title, "g", seen(Verdict.GREEN, seconds=2.0), seen(Verdict.RED, "c" * 40, 3.0)) for title in titles
    )
    return Report(load_base(), "d" * 64, ("one", "two"), tree, tuple((t, seen(prefix)) for t in titles), proofs)


def test_a_report_counts_what_falls_short_and_each_result_once() -> None:
    assert (report("one", "two").failures, report("one", "two").seconds) == (0, 5.0)
    assert report("one", prefix=Verdict.RED_BUILD).failures == 1
    assert (report("one", prefix=Verdict.DEFERRED).failures, report("one", prefix=Verdict.DEFERRED).deferred) == (0, 1)


def rows(record: dict[str, Any]) -> list[str]:
    return [row["patch"] for row in record["proofs"]]


def test_a_part_joins_what_was_recorded_of_the_same_series(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    new = document(report("one"))
    assert merged(new, path, ["one", "two"]) == new
    path.write_text(json.dumps(document(report("two"))))
    assert rows(merged(new, path, ["one", "two"])) == ["one", "two"]
    path.write_text(json.dumps(document(report("two", tree="e" * 40))))
    assert merged(new, path, ["one", "two"]) == new
    path.write_text("{")
    assert merged(new, path, ["one", "two"]) == new
