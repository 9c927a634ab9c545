"""Why a patch does not apply: the class, the place and the sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from lint_series import GOOD

from tqforge.errors import ExitCode, PatchError
from tqforge.series.failures import ApplyError, ApplyFailure, FailureKind, broken_reason, classify
from tqforge.series.series import Patch

FILE, EXISTS = "ggml/src/ggml.c", "the patch adds a file that already exists"
CONFLICT, DELETED, BROKEN = FailureKind.CONFLICT, FailureKind.TARGET_DELETED, FailureKind.BROKEN


@pytest.mark.parametrize(
    ("message", "kind", "detail"),
    [
        (f"error: patch failed: {FILE}:1\nerror: {FILE}: patch does not apply\n", CONFLICT, "line 1"),
        (f"error: {FILE}: patch does not apply\n", CONFLICT, ""),
        (f"error: {FILE}: does not exist in index\n", DELETED, "the base has no such file"),
        (f"error: {FILE}: No such file or directory\n", DELETED, "the base has no such file"),
        (f"error: {FILE}: already exists in index\n", CONFLICT, EXISTS),
        (
            f"error: {FILE}: already exists in working directory\n",
            CONFLICT,
            EXISTS,
        ),
        (f"error: {FILE}: wrong type\n", CONFLICT, ""),
        (f"error: {FILE}: cannot read\n", CONFLICT, ""),
    ],
)
def test_the_message_of_git_gives_class_and_file(message: str, kind: FailureKind, detail: str) -> None:
    found = classify("a.patch", GOOD.encode(), message, reverses=False)
    assert (found.patch, found.kind, found.file, found.detail) == ("a.patch", kind, FILE, detail)


def test_the_hunk_is_counted_from_the_line_that_git_names() -> None:
    second = "@@ -20,3 +21,4 @@\n int x;\n+int more;\n int y;\n int z;\n"
    message = f"error: patch failed: {FILE}:%d\n"
    for line, number in ((1, 1), (20, 2), (7, 0)):
        found = classify("a.patch", (GOOD + second).encode(), message % line, reverses=False)
        assert (found.hunk, found.hunks, found.detail) == (number, 2, f"line {line}")


def test_a_file_of_another_patch_has_no_hunk() -> None:
    found = classify("a.patch", GOOD.encode(), "error: patch failed: other.c:1\n", reverses=False)
    assert (found.file, found.hunk, found.hunks) == ("other.c", 0, 0)


def test_a_patch_that_applies_in_reverse_is_upstream_whatever_git_says() -> None:
    found = classify("a.patch", GOOD.encode(), f"error: patch failed: {FILE}:1\n", reverses=True)
    assert (found.kind, found.file) == (FailureKind.ALREADY_UPSTREAM, FILE)


def test_a_malformed_patch_is_broken_whatever_git_says() -> None:
    found = classify("a.patch", b"not a patch\n", "error: patch failed: x:1\n", reverses=True)
    assert found.kind is BROKEN
    assert "not in mail format" in found.detail


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        ("fatal: the disk is on fire\n", "the disk is on fire"),
        ("hint: nothing\n", "git gave no reason"),
        ("", "git gave no reason"),
    ],
)
def test_other_messages_are_quoted(message: str, detail: str) -> None:
    assert classify("a.patch", GOOD.encode(), message, reverses=False) == ApplyFailure("a.patch", BROKEN, detail=detail)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (GOOD.encode(), ""),
        (GOOD.replace("\n", "\r\n").encode(), "converted in transfer"),
        (GOOD[: GOOD.index("diff --git")].encode(), "it changes no file"),
        (GOOD.replace(" int c;\n", "").encode(), "cut off"),
        (GOOD.replace("Because.", "Bec\udcffause.").encode("utf-8", "surrogateescape"), ""),
    ],
)
def test_broken_reason(data: bytes, reason: str) -> None:
    found = broken_reason(data)
    assert reason in found
    assert bool(found) is bool(reason)


def test_carriage_returns_in_the_changed_lines_are_no_conversion() -> None:
    assert broken_reason(GOOD.replace("+int thing;\n", "+int thing;\r\n").encode()) == ""


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (ApplyFailure("a.patch", BROKEN, detail="why"), "a.patch does not apply: broken (why)"),
        (ApplyFailure("a.patch", DELETED, file="x.c"), "a.patch does not apply: target deleted in x.c"),
        (
            ApplyFailure("a.patch", CONFLICT, file="x.c", hunk=2, hunks=3, detail="line 9"),
            "a.patch does not apply: conflict in x.c, hunk 2 of 3 (line 9)",
        ),
    ],
)
def test_sentences(failure: ApplyFailure, sentence: str) -> None:
    assert failure.sentence() == sentence


def test_the_error_carries_its_cause() -> None:
    patch = Patch("a.patch", Path("/series/a.patch"), GOOD.encode())
    failure = ApplyFailure("a.patch", CONFLICT, file="x.c")
    error = ApplyError(failure, patch, base_commit="b" * 40, head="c" * 40)
    assert isinstance(error, PatchError)
    assert (error.code, error.failure, error.patch) == (ExitCode.PATCH, failure, patch)
    assert (error.base_commit, error.head) == ("b" * 40, "c" * 40)
    assert error.what == "a.patch does not apply: conflict in x.c."
    assert error.where == "/series/a.patch"
