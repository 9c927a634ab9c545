"""A removed line belongs to the function it stands in."""

from __future__ import annotations

from tqforge.series.drift.sections import Removal, misplaced, removals
from tqforge.series.patchfile import parse_diff

OURS = "void ours() {\n    a();\n    b();\n}\n"
THEIRS = OURS.replace("ours", "theirs")
ID = f"{'0' * 40}..{'1' * 40} 100644"


def diff(path: str, start: int, *lines: str, head: str = "") -> str:
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    names = head or f"--- a/{path}\n+++ b/{path}\n"
    text = "".join(f"{line}\n" for line in lines)
    return f"diff --git a/{path} b/{path}\nindex {ID}\n{names}@@ -{start},{old} +{start},{new} @@\n{text}"


def found(text: str, old: str) -> list[Removal]:
    return list(removals(parse_diff(text), lambda path: old))


def test_a_removed_line_has_the_heading_above_it() -> None:
    text = diff("f.c", 2, "     a();", "-    b();", "+    c();", " }")
    assert found(text, OURS) == [Removal("f.c", "    b();", "void ours() {")]


def test_headings_braces_and_lines_without_a_heading_do_not_count() -> None:
    assert found(diff("f.c", 1, "-void ours() {", "+void our() {", "     a();"), OURS) == []
    assert found(diff("f.c", 4, "-}", "+};"), OURS) == []
    assert found(diff("f.c", 1, "-    a();", "+    b();"), "    a();\n") == []
    gone = diff("f.c", 2, "-    a();", head="deleted file mode 100644\n--- a/f.c\n+++ /dev/null\n")
    assert found(gone, OURS) == []


def test_a_line_that_goes_from_the_wrong_function() -> None:
    made = [Removal("f.c", "    b();", "void ours() {")]
    landed = [Removal("f.c", "    b();", "void theirs() {")]
    assert misplaced(made, landed, lambda path: THEIRS + OURS) == [(landed[0], "void ours() {")]
    assert misplaced(made, made, lambda path: THEIRS + OURS) == []


def test_a_function_that_was_renamed_or_has_the_line_no_more_is_no_loss() -> None:
    made = [Removal("f.c", "    b();", "void ours() {")]
    landed = [Removal("f.c", "    b();", "void theirs() {")]
    assert misplaced(made, landed, lambda path: THEIRS) == []
    assert misplaced(made, landed, lambda path: THEIRS + OURS.replace("    b();\n", "")) == []
    assert misplaced([], landed, lambda path: THEIRS + OURS) == []
