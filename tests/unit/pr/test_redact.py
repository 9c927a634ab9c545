"""What leaves the machine with a pull-request pack."""

from __future__ import annotations

import pytest

from tqforge.pr.redact import without_paths

KNOWN = ("/home/me", "/home/me/.cache/tqforge", "/Volumes/My Disk/work")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/me/models/x.gguf", "x.gguf"),
        ("/home/me/.cache/tqforge/builds/a/bin/llama-bench -m /data/models/y.gguf", "llama-bench -m y.gguf"),
        ("--model=/opt/models/x.gguf", "--model=x.gguf"),
        ("/Volumes/My Disk/work/x.gguf", "x.gguf"),
        ("C /usr/bin/cc cc (Debian 12) 12.2.0", "C cc cc (Debian 12) 12.2.0"),
        ("no such file: '/home/me'", "no such file: '~'"),
        ("/home/me2/x", "x"),
        ("q8_0/tq3_0 and f16/f16", "q8_0/tq3_0 and f16/f16"),
        ("3/4 tokens/s", "3/4 tokens/s"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("ggml/src/ggml.c:10: error", "ggml/src/ggml.c:10: error"),
        ("a / b", "a / b"),
        ("~/models/x.gguf", "x.gguf"),
    ],
)
def test_a_path_becomes_the_name_of_its_file(text: str, left: str) -> None:
    assert without_paths(text, KNOWN) == left


def test_a_whole_record() -> None:
    record = {"command": ["tqforge", "verify", "--model", "/home/me/x.gguf"], "rows": [{"n": 1, "note": None}]}
    assert without_paths(record, KNOWN) == {
        "command": ["tqforge", "verify", "--model", "x.gguf"],
        "rows": [{"n": 1, "note": None}],
    }
