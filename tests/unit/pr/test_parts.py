"""Which part a patch belongs to, and its message without trailers. Splitting a repository is tested in tests/repo."""

from __future__ import annotations

import pytest

from tqforge.pr.split import message, part_of
from tqforge.series.patchfile import PatchFile, parse

HEAD = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"


def patch(*paths: str, body: str = "") -> PatchFile:
    diffs = "".join(
        f"diff --git a/{path} b/{path}\nindex 1111111..2222222 100644\n"
        f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
        for path in paths
    )
    return parse(f"{HEAD}Subject: [PATCH 3/9] ggml: add it\n\n{body}---\n{diffs}-- \n2.39.5\n")


@pytest.mark.parametrize(
    ("paths", "part"),
    [
        (("ggml/src/ggml.c",), "cpu"),
        (("ggml/src/ggml-cpu/ops.cpp",), "cpu"),
        (("ggml/src/ggml-metal/ggml-metal.metal",), "metal"),
        (("ggml/src/ggml-metal/a.m", "ggml/src/ggml-metal/b.m"), "metal"),
        (("ggml/src/ggml-cuda/a.cu",), "cuda"),
        (("ggml/src/ggml-metal/a.m", "ggml/src/ggml-cuda/a.cu"), "cpu"),
        (("ggml/src/ggml-metal/a.m", "tests/test-backend-ops.cpp"), "cpu"),
        (("ggml/src/ggml-metal.c",), "cpu"),
        (("docs/ggml/src/ggml-metal/a.md",), "cpu"),
    ],
)
def test_a_patch_is_of_a_backend_if_it_changes_nothing_else(paths: tuple[str, ...], part: str) -> None:
    assert part_of(patch(*paths)) == part


def test_the_message_loses_the_trailers_and_the_number() -> None:
    body = "Why it is needed.\n\nPatch-Name: it\nWhy: because\n"
    trailers = [name for name, _ in patch("a.c", body=body).trailers]
    assert trailers == ["Patch-Name", "Why"]
    assert message(patch("a.c", body=body)) == "ggml: add it\n\nWhy it is needed.\n"


def test_a_message_of_trailers_alone_is_its_subject() -> None:
    assert message(patch("a.c", body="Patch-Name: it\n")) == "ggml: add it\n"


def test_other_trailers_go_upstream() -> None:
    assert "Signed-off-by: A <a@example.org>" in message(
        patch("a.c", body="Patch-Name: it\nSigned-off-by: A <a@example.org>\n")
    )
