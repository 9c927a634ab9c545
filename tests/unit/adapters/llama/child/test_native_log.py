"""What is read from the log of the library."""

from __future__ import annotations

import pytest

from tqforge.adapters.llama.child.native import Log

INFO, DEBUG = 2, 1


def test_lines_that_come_in_pieces_are_joined(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log()
    for piece in (b"loading", b" model\nsecond", b" line\n"):
        log(INFO, piece, None)
    log(DEBUG, b"details\n", None)
    assert list(log.lines) == ["loading model", "second line", "details"]
    assert capsys.readouterr().err == "loading model\nsecond line\n"


def test_the_last_three_lines_that_name_a_failure() -> None:
    log = Log()
    log(INFO, b"Error one\nfine\nfailed two\nunsupported three\nrequires four\n", None)
    assert log.errors() == "failed two | unsupported three | requires four"
    assert Log().errors() == ""


def test_a_watched_line_is_not_kept() -> None:
    log = Log()
    log.watch = lambda line: line.startswith("node")
    log(INFO, b"node # 0\nother\n", None)
    assert list(log.lines) == ["other"]


def test_the_rotated_sides_are_those_of_the_last_cache() -> None:
    log = Log()
    assert log.rotation() == {}
    log(INFO, b"attn_rot_k = 1\nattn_rot_v = 64\nattn_rot_k = 0\n", None)
    assert log.rotation() == {"k": False, "v": True}
