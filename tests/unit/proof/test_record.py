"""What a proof comes to, and how the record of one run joins an earlier one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from tqforge.proof.record import GuardProof, PrefixProof, ProofOutcome, ProofRecord, ProvenBase, merged
from tqforge.proof.results import GuardResult, GuardStatus

PASSED, FAILED, BUILD_FAILED = GuardStatus.PASSED, GuardStatus.FAILED, GuardStatus.BUILD_FAILED
NO_CASES, SKIPPED = GuardStatus.NO_CASES, GuardStatus.SKIPPED


def result(status: GuardStatus, tree: str = "a" * 40, seconds: float = 0.0) -> GuardResult:
    return GuardResult(tree=tree, test="test-x", status=status, detail="FAIL: x", seconds=seconds)


def proof(with_patch: GuardStatus, without: GuardStatus | None, **options: object) -> GuardProof:
    return GuardProof(
        patch="p",
        guard="g",
        with_patch=result(with_patch),
        without_patch=result(without) if without else None,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("with_patch", "without", "outcome", "failed", "holds"),
    [
        (PASSED, FAILED, ProofOutcome.PROVEN, False, True),
        (PASSED, BUILD_FAILED, ProofOutcome.PROVEN, False, True),
        (PASSED, PASSED, ProofOutcome.USELESS, True, False),
        (PASSED, NO_CASES, ProofOutcome.USELESS, True, False),
        (PASSED, SKIPPED, ProofOutcome.SKIPPED, False, False),
        (PASSED, None, ProofOutcome.SKIPPED, False, False),
        (SKIPPED, None, ProofOutcome.SKIPPED, False, False),
        (FAILED, None, ProofOutcome.BROKEN, True, False),
        (NO_CASES, None, ProofOutcome.BROKEN, True, False),
        (BUILD_FAILED, FAILED, ProofOutcome.BROKEN, True, False),
    ],
)
def test_outcomes(
    with_patch: GuardStatus, without: GuardStatus | None, outcome: ProofOutcome, failed: bool, holds: bool
) -> None:
    found = proof(with_patch, without)
    assert (found.outcome, found.failed, found.holds) == (outcome, failed, holds)


def test_sentences() -> None:
    needed = proof(PASSED, FAILED, how="left out", needed_by=("b", "c"))
    assert needed.outcome is ProofOutcome.NEEDED
    assert needed.holds
    assert needed.sentence() == "proven on the series before it; needed by b, c"
    assert needed.without() == "failed (left out): FAIL: x"
    assert proof(NO_CASES, None, note="why").sentence() == "with the patch: ran no test case"
    assert proof(NO_CASES, None, note="why").without() == "why"
    assert proof(PASSED, PASSED).sentence() == "passes without the patch"


def record(*titles: str, tree: str = "b" * 40, prefix: GuardStatus = PASSED) -> ProofRecord:
    return ProofRecord(
        base=ProvenBase(name="toy", tree="0" * 40),
        series_sha256="d" * 64,
        tree=tree,
        prefixes=tuple(PrefixProof(patch=title, result=result(prefix)) for title in titles),
        proofs=tuple(
            GuardProof(
                patch=title,
                guard="g",
                with_patch=result(PASSED, seconds=2.0),
                without_patch=result(FAILED, "c" * 40, 3.0),
            )
            for title in titles
        ),
    )


def test_a_record_counts_failures_and_each_result_once() -> None:
    assert (record("one", "two").failures, record("one", "two").seconds) == (0, 5.0)
    assert record("one", prefix=BUILD_FAILED).failures == 1
    assert (record("one", prefix=SKIPPED).failures, record("one", prefix=SKIPPED).skipped) == (0, 1)


def test_the_record_is_read_back_as_it_was_written_but_for_the_times() -> None:
    text = record("one").to_json()
    read = ProofRecord.model_validate_json(text)
    assert read.to_json() == text
    assert "seconds" not in text
    assert json.loads(text)["schema"] == "tqforge.prove/2"
    assert json.loads(text)["proofs"][0]["outcome"] == "proven"
    assert (read.seconds, read.proofs[0].holds) == (0.0, True)


def test_an_outcome_that_does_not_belong_to_its_results_is_not_believed() -> None:
    text = record("one").to_json().replace('"status": "failed"', '"status": "passed"')
    assert '"outcome": "proven"' in text
    assert ProofRecord.model_validate_json(text).proofs[0].outcome is ProofOutcome.USELESS


def test_a_record_of_another_schema_is_refused() -> None:
    with pytest.raises(ValidationError):
        ProofRecord.model_validate_json(record("one").to_json().replace("prove/2", "prove/1"))


def rows(found: ProofRecord) -> list[str]:
    return [row.patch for row in found.proofs]


def test_a_part_joins_the_record_of_the_same_series(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    new = record("one")
    assert merged(new, path, ["one", "two"]) == new
    path.write_text(record("two").to_json())
    assert rows(merged(new, path, ["one", "two"])) == ["one", "two"]
    assert rows(merged(new, path, ["two", "one"])) == ["two", "one"]
    path.write_text(record("two", tree="e" * 40).to_json())
    assert merged(new, path, ["one", "two"]) == new
    path.write_text("{")
    assert merged(new, path, ["one", "two"]) == new


def test_a_new_result_replaces_the_recorded_one(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(record("one", "two", prefix=BUILD_FAILED).to_json())
    found = merged(record("one"), path, ["one", "two"])
    assert [(row.patch, row.result.status) for row in found.prefixes] == [("one", PASSED), ("two", BUILD_FAILED)]
