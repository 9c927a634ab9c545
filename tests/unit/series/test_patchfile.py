"""The parser loses nothing: what it read can be written again. Each malformed file has one message."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tqforge import resources
from tqforge.series.failures import FailureKind, broken_reason, classify
from tqforge.series.patchfile import FileDiff, Hunk, PatchFile, PatchFormatError, parse

ID = "0" * 40
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)
WORD = st.text("abcdefgh_-", min_size=1, max_size=8)


def write(patch: PatchFile) -> str:
    """Return the text of a patch: the inverse of `parse`."""
    lines = [*patch.head]
    for diff in patch.files:
        lines += diff.head
        for hunk in diff.hunks:
            old, new = extent(hunk.old_start, hunk.old_count), extent(hunk.new_start, hunk.new_count)
            lines += [f"@@ -{old} +{new} @@{hunk.section}", *hunk.lines]
    return "".join(f"{line}\n" for line in [*lines, *patch.tail])


def extent(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


@st.composite
def hunks(draw: st.DrawFn) -> Hunk:
    lines = draw(st.lists(st.tuples(st.sampled_from(" +-"), TEXT), min_size=1, max_size=8))
    texts = [sign + text for sign, text in lines]
    old = sum(sign in " -" for sign, _ in lines)
    new = sum(sign in " +" for sign, _ in lines)
    if draw(st.booleans()):
        texts.append("\\ No newline at end of file")
    section = draw(st.sampled_from(["", " int f(int a) {", " @@ odd @@"]))
    return Hunk(draw(st.integers(0, 9999)), old, draw(st.integers(0, 9999)), new, section, tuple(texts))


@st.composite
def diffs(draw: st.DrawFn) -> FileDiff:
    path = "/".join(draw(st.lists(WORD, min_size=1, max_size=3)))
    head = [f"diff --git a/{path} b/{path}", f"index {ID}..{'1' * 40} 100644", f"--- a/{path}", f"+++ b/{path}"]
    kind = draw(st.sampled_from("MADR"))
    if kind == "A":
        head[1:2] = ["new file mode 100644", head[1]]
        head[-2] = "--- /dev/null"
    if kind == "D":
        head[1:2] = ["deleted file mode 100644", head[1]]
        head[-1] = "+++ /dev/null"
    if kind == "R":
        return FileDiff((head[0], "similarity index 100%", f"rename from {path}", f"rename to {path}"))
    return FileDiff(tuple(head), tuple(draw(st.lists(hunks(), min_size=1, max_size=3))))


@st.composite
def patches(draw: st.DrawFn) -> PatchFile:
    message = draw(st.lists(TEXT.filter(lambda text: not text.startswith(("diff --git", "---"))), max_size=4))
    head = [
        f"From {ID} Mon Sep 17 00:00:00 2001",
        "From: tqforge <tqforge@localhost>",
        "Date: Thu, 1 Oct 2026 00:00:00 +0000",
        f"Subject: [PATCH] {draw(WORD)}",
        "",
        *message,
        "",
        "Patch-Name: x",
        "---",
    ]
    tail = draw(st.sampled_from([(), ("-- ", "2.39.5", "")]))
    return PatchFile(tuple(head), tuple(draw(st.lists(diffs(), min_size=1, max_size=3))), tail)


@given(patches())
def test_write_then_parse_is_the_identity(patch: PatchFile) -> None:
    assert parse(write(patch)) == patch


@given(patches())
def test_parse_then_write_is_the_identity(patch: PatchFile) -> None:
    text = write(patch)
    assert write(parse(text)) == text
    assert parse(text).trailer("Patch-Name") == "x"
    assert all(diff.status in "AMDR" and diff.path for diff in parse(text).files)


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(PatchFormatError):
        assert parse(text).head == tuple(text.split("\n"))[: len(parse(text).head)]


GOOD = f"""From {ID} Mon Sep 17 00:00:00 2001
From: A <a@b>
Date: Thu, 1 Oct 2026 00:00:00 +0000
Subject: [PATCH] area : a subject that goes on
 in a second line

Body.

Why: it is needed
Guard: test-x

diff --git a/f.c b/f.c
index {ID}..{"1" * 40} 100644
--- a/f.c
+++ b/f.c
@@ -1,3 +1,4 @@ int f()
 a
+b
 c
 d
"""

#: What is changed in the good patch, and the one message it gives.
INVALID: dict[str, tuple[str, str, str]] = {
    "no mail": (GOOD[: GOOD.index("From: ")], "", "line 1: not in mail format"),
    "no subject": (
        "Subject: [PATCH] area : a subject that goes on\n in a second line\n",
        "",
        "the mail header 'Subject:' is missing",
    ),
    "no date": ("Date: Thu, 1 Oct 2026 00:00:00 +0000\n", "", "the mail header 'Date:' is missing"),
    "odd header": ("Date:", "date", "not a mail header"),
    "cut": (" c\n d\n", " c\n", "cut off, or its line counts are wrong"),
    "wrong counts": ("-1,3 +1,4", "-1,4 +1,5", "cut off, or its line counts are wrong"),
    "short counts": ("-1,3 +1,4", "-1,2 +1,3", "neither a hunk nor a file"),
    "lost sign": (" a\n+b", "a\n+b", "the hunk ends 3 old and 4 new lines early"),
    "broken header": ("@@ -1,3 +1,4 @@", "@@ -x +1,4 @@", "a broken hunk header"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_patches_give_one_message(name: str) -> None:
    old, new, message = INVALID[name]
    assert old in GOOD
    with pytest.raises(PatchFormatError, match=message):
        parse(GOOD.replace(old, new, 1))


def test_what_a_patch_says() -> None:
    patch = parse(GOOD)
    assert patch.subject == "area : a subject that goes on in a second line"
    assert patch.trailers == [("Why", "it is needed"), ("Guard", "test-x")]
    assert patch.trailer("Missing") == ""
    assert patch.paths() == ["f.c"]
    assert patch.files[0].hunks[0].changed("+") == ["b"]


@pytest.mark.parametrize(
    ("said", "reverses", "kind", "file", "hunk"),
    [
        ("error: patch failed: f.c:1\nerror: f.c: patch does not apply", False, FailureKind.CONFLICT, "f.c", 1),
        ("error: patch failed: f.c:9\nerror: f.c: patch does not apply", False, FailureKind.CONFLICT, "f.c", 0),
        ("error: f.c: does not exist in index", False, FailureKind.TARGET_DELETED, "f.c", 0),
        ("error: f.c: already exists in index", False, FailureKind.CONFLICT, "f.c", 0),
        ("error: patch failed: f.c:1", True, FailureKind.ALREADY_UPSTREAM, "f.c", 0),
        ("fatal: something new", False, FailureKind.BROKEN, "", 0),
        ("", False, FailureKind.BROKEN, "", 0),
    ],
)
def test_classes_of_failure(said: str, reverses: bool, kind: FailureKind, file: str, hunk: int) -> None:
    failure = classify("x.patch", GOOD.encode(), said, reverses=reverses)
    assert (failure.kind, failure.file, failure.hunk) == (kind, file, hunk)
    assert failure.sentence().startswith(f"x.patch does not apply: {kind}")


def test_broken_files_have_a_reason() -> None:
    assert broken_reason(GOOD.encode()) == ""
    assert "CRLF" in broken_reason(GOOD.replace("\n", "\r\n").encode())
    assert broken_reason(GOOD.replace("\n d", "\n d\r").encode()) == ""  # a file of upstream with CRLF
    assert classify("x.patch", b"", "", reverses=True).kind is FailureKind.BROKEN


SHIPPED = sorted(resources.patches_dir("upstream").glob("*.patch"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_patches_survive_a_round_trip(path: Path) -> None:
    text = path.read_bytes().decode()
    assert write(parse(text)) == text
