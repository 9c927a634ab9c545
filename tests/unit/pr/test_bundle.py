"""The files of the pull-request pack, from parts and records."""

from __future__ import annotations

import hashlib

import pytest
from lint_series import GOOD
from synthetic_report import report

from tqforge.base.pins import load_base
from tqforge.pr import bundle
from tqforge.pr.evidence import Runs, states
from tqforge.pr.split import Part, Piece, message, part_of
from tqforge.proof.record import GuardProof, ProofRecord, ProvenBase
from tqforge.proof.results import GuardResult, GuardStatus
from tqforge.series.patchfile import parse

BASE = load_base("upstream")
PIECE = Piece(title="ggml-thing", file="0001-ggml-thing.patch", data=GOOD.encode(), tree="t" * 40, alone=True)
PART = Part(name="cpu", pieces=(PIECE,))
NOTHING = Runs(reports=(), proofs=(), stale=(), files=())


def proof(patch: str, without: GuardStatus | None, **options: object) -> GuardProof:
    passed = GuardResult(tree="t" * 40, test="test-x", status=GuardStatus.PASSED)
    other = GuardResult(tree="u" * 40, test="test-x", status=without) if without else None
    return GuardProof(patch=patch, guard="test-x a|b", with_patch=passed, without_patch=other, **options)  # type: ignore[arg-type]


def runs(*proofs: GuardProof) -> Runs:
    base = ProvenBase(name="upstream", tree="0" * 40)
    record = ProofRecord(base=base, series_sha256="d" * 64, tree="t" * 40, proofs=proofs)
    return Runs(reports=(("one", report()),), proofs=(record,), stale=(), files=(("one.report.json", b"{}"),))


def test_every_table_says_when_nothing_is_recorded() -> None:
    text = bundle.facts(BASE, [PART], NOTHING)
    assert text.count("No recorded run of an exported tree.") == 5
    assert f"Base: {BASE.title}, commit {BASE.commit}, tree {BASE.tree}." in text
    assert "| 0001-ggml-thing.patch | ggml : add a thing | 1 | +1 -0 | yes |" in text


def test_proofs_are_a_table() -> None:
    needed = proof("b", GuardStatus.FAILED, needed_by=("c",))
    text = bundle.facts(BASE, [PART], runs(proof("a", GuardStatus.FAILED), needed, proof("c", None, note="why")))
    assert "| a | `test-x a/b` | passed | failed | proven |" in text
    assert "| b | `test-x a/b` | passed | failed | proven on the series before it; needed by c |" in text
    assert "| c | `test-x a/b` | passed | why | skipped |" in text


@pytest.mark.parametrize(
    ("proofs", "filled", "what"),
    [
        ((), False, "missing: no recorded"),
        ((("a", GuardStatus.FAILED),), True, "FACTS.md: 1 guard tests"),
        ((("a", GuardStatus.FAILED), ("b", GuardStatus.PASSED)), False, "not proven: b"),
        ((("b", GuardStatus.SKIPPED), ("b", None)), False, "not proven: b"),
    ],
)
def test_the_state_of_the_proofs(proofs: tuple[tuple[str, GuardStatus | None], ...], filled: bool, what: str) -> None:
    state = states(runs(*(proof(name, status) for name, status in proofs)))["prove"]
    assert state.filled is filled
    assert what in state.what


def test_measured_rows_and_machines_are_in_the_facts() -> None:
    text = bundle.facts(BASE, [PART], runs())
    machine = report().machine.cpu
    assert f"| one | {report().build.tree[:12]} | {machine} |" in text
    assert "| f16/f16, noise |" in text


def test_the_pack_is_complete_and_summed() -> None:
    found = bundle.files(BASE, [PART], runs(), "checklist", "template")
    assert sorted(found) == [
        "CHECKLIST.md",
        "COMMANDS.md",
        "DESCRIPTION.md",
        "FACTS.md",
        "SHA256SUMS",
        "evidence/one.report.json",
        "parts/cpu/0001-ggml-thing.patch",
    ]
    for line in found["SHA256SUMS"].decode().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256(found[name]).hexdigest() == digest
    assert found["DESCRIPTION.md"] == b"template"
    assert "DESCRIPTION.md" not in bundle.files(BASE, [PART], runs(), "checklist", None)
    assert b"git am parts/cpu/*.patch" in found["COMMANDS.md"]


@pytest.mark.parametrize(
    ("paths", "part"),
    [
        (("ggml/src/ggml.c",), "cpu"),
        (("ggml/src/ggml-cpu/x.c",), "cpu"),
        (("ggml/src/ggml-metal/x.m",), "metal"),
        (("ggml/src/ggml-cuda/x.cu", "ggml/src/ggml-cuda/y.cu"), "cuda"),
        (("ggml/src/ggml-metal/x.m", "tests/x.cpp"), "cpu"),
        (("ggml/src/ggml-metal/x.m", "ggml/src/ggml-cuda/y.cu"), "cpu"),
    ],
)
def test_the_part_of_a_patch(paths: tuple[str, ...], part: str) -> None:
    head, _, diff = GOOD.partition("diff --git")
    text = head + "".join(f"diff --git{diff}".replace("ggml/src/ggml.c", path) for path in paths)
    assert part_of(parse(text)) == part


def test_the_message_goes_upstream_without_trailers() -> None:
    assert message(parse(GOOD)) == "ggml : add a thing\n\nBecause.\n"
    assert message(parse(GOOD.replace("Because.\n", ""))) == "ggml : add a thing\n"
