from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tqforge.series.patchfile import parse
from tqforge.series.trailers import Guard, Status, check_why, message, problems

GOOD = [("Patch-Name", "a-b"), ("Why", "the need is real"), ("Upstream-Status", "Pending"), ("Guard", "test-x all")]

#: The corpus of invalid trailers: what is changed, and the one message it gives.
INVALID: dict[str, tuple[dict[str, str | None], str]] = {
    "no name": ({"Patch-Name": None}, "'Patch-Name:' is missing"),
    "no why": ({"Why": None}, "'Why:' is missing"),
    "no status": ({"Upstream-Status": None}, "'Upstream-Status:' is missing"),
    "no guard": ({"Guard": None}, "'Guard:' is missing"),
    "other name": ({"Patch-Name": "c"}, "does not match the file name a-b.patch"),
    "big letters": ({"Patch-Name": "A B"}, "use lower-case letters"),
    "short why": ({"Why": "bug"}, "one sentence"),
    "unknown status": ({"Upstream-Status": "Soon"}, "use Pending, Submitted"),
    "submitted nowhere": ({"Upstream-Status": "Submitted"}, "Submitted must say where"),
    "submitted to an empty place": ({"Upstream-Status": "Submitted [ ]"}, "Submitted must say where"),
    "merged nowhere": ({"Upstream-Status": "Merged"}, "Merged must say where"),
    "inappropriate without a reason": ({"Upstream-Status": "Inappropriate"}, "Inappropriate must say why"),
    "pending somewhere": ({"Upstream-Status": "Pending [x]"}, "Pending takes no bracket"),
    "guard in a shell": ({"Guard": "test-x; rm -rf y"}, "without a shell"),
    "guard with a path": ({"Guard": "../bin/test-x"}, "not the name of a test program"),
    "metal emulator without a suite": ({"Guard": "metal-emulator"}, "name of a suite"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_trailers_give_one_message(name: str) -> None:
    changes, expected = INVALID[name]
    values = {**dict(GOOD), **changes}
    found = problems([(key, value) for key, value in values.items() if value is not None], "a-b")
    assert expected in "; ".join(found)
    assert len(found) == 1 or name in ("big letters",)


def test_good_trailers() -> None:
    assert problems(GOOD, "a-b") == []
    assert problems([*GOOD, ("Guard", "metal-emulator cpy --type tq3_0")], "a-b") == []
    assert problems([*GOOD, ("Why", "again and again")], "a-b") == ["'Why:' occurs 2 times"]
    assert Status.parse("Merged [upstream, 2026]").about == "upstream, 2026"
    assert str(Guard.parse("test-backend-ops test  -o SET_ROWS")) == "test-backend-ops test -o SET_ROWS"
    assert Guard.parse("metal-emulator cpy").on_metal_emulator
    assert check_why("a real need") == "a real need"
    assert message("s", "b\n", dict(GOOD)).count("\n\n") == 2


SENTENCE = st.lists(st.text("abcXYZ0189,:'", min_size=1, max_size=8), min_size=3, max_size=8).map(" ".join)
HEAD = "From 0 Mon Sep 17 00:00:00 2001\nFrom: a <a@b>\nDate: Thu, 1 Oct 2026 00:00:00 +0000\nSubject: [PATCH] "


@given(subject=SENTENCE, body=st.lists(SENTENCE, max_size=3).map("\n".join), why=SENTENCE)
def test_what_new_writes_is_what_lint_reads(subject: str, body: str, why: str) -> None:
    values = {**dict(GOOD), "Why": why}
    patch = parse(HEAD + message(subject, body, values) + "---\n")
    assert dict(patch.trailers) == values
    assert problems(patch.trailers, "a-b") == []
    assert patch.subject == subject


@pytest.mark.parametrize(
    ("text", "program", "args"),
    [
        ("test-tq3_0", "test-tq3_0", ()),
        ("  test-tq3_0   norm  all ", "test-tq3_0", ("norm", "all")),
        (
            "test-backend-ops test -o CPY -p type_src=f32,.*",
            "test-backend-ops",
            ("test", "-o", "CPY", "-p", "type_src=f32,.*"),
        ),
    ],
)
def test_a_guard_is_a_program_with_arguments(text: str, program: str, args: tuple[str, ...]) -> None:
    guard = Guard.parse(text)
    assert (guard.program, guard.args, guard.on_metal_emulator) == (program, args, False)
    assert str(guard) == " ".join(text.split())


@pytest.mark.parametrize("sign", [";", "&", "|", "<", ">", "`", "$", "\\"])
def test_a_guard_runs_without_a_shell(sign: str) -> None:
    with pytest.raises(ValueError, match="without a shell"):
        Guard.parse(f"test-x a{sign}b")


@pytest.mark.parametrize("text", ["", "  ", "/bin/true", "../test-x", "-x"])
def test_a_guard_names_a_program_of_the_build(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no command|not the name of a test program"):
        Guard.parse(text)


@pytest.mark.parametrize(
    ("text", "word", "about"),
    [
        ("Pending", "Pending", ""),
        ("Submitted [https://example.org/1]", "Submitted", "https://example.org/1"),
        ("Merged [b1234]", "Merged", "b1234"),
        ("Inappropriate [only for tests]", "Inappropriate", "only for tests"),
    ],
)
def test_upstream_status(text: str, word: str, about: str) -> None:
    status = Status.parse(text)
    assert (status.word, status.about) == (word, about)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pending", "use Pending"),
        ("Done", "use Pending"),
        ("Pending [x]", "Pending takes no bracket"),
        ("Submitted", "Submitted must say where"),
        ("Merged [ ]", "Merged must say where"),
        ("Inappropriate", "Inappropriate must say why"),
    ],
)
def test_an_invalid_status(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Status.parse(text)


@pytest.mark.parametrize("body", ["", "  \n", "A body.\nIn two lines."])
def test_a_message_has_its_trailers_in_the_last_paragraph(body: str) -> None:
    values = {"Guard": "test-x", "Why": "it is needed here", "Patch-Name": "a-b", "Upstream-Status": "Pending"}
    text = message("ggml : x", body, values)
    subject, _, rest = text.partition("\n\n")
    assert subject == "ggml : x"
    paragraphs = rest.rstrip("\n").split("\n\n")
    assert paragraphs[-1].splitlines() == [
        "Patch-Name: a-b",
        "Why: it is needed here",
        "Upstream-Status: Pending",
        "Guard: test-x",
    ]
    assert paragraphs[:-1] == ([body.strip()] if body.strip() else [])
