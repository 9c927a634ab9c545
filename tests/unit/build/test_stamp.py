from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tqforge.build import stamp as buildstamp
from tqforge.build.stamp import LoadCheck, Stamp

INPUTS: dict[str, Any] = {
    "base": "upstream",
    "commit": "c" * 40,
    "tree": "a" * 40,
    "series_sha256": "5" * 64,
    "checkout": "/workspace/git/upstream",
    "preset": "linux-x86_64-cpu",
    "metal": False,
    "native": True,
    "arguments": ("-DGGML_NATIVE=ON", "-DLLAMA_BUILD_COMMIT=tqforge-aaaaaaaaaaaa"),
    "targets": ("llama", "llama-server"),
    "compilers": {"C": "/usr/bin/cc 12", "C++": "/usr/bin/c++ 12"},
    "tools": {"cmake": "/venv/cmake 4.0", "ninja": "/venv/ninja 1.13"},
    "version": "b1-tqforge-aaaaaaaaaaaa",
}


def _stamp(**changes: Any) -> Stamp:
    return Stamp(**{**INPUTS, **changes})


@pytest.fixture
def finished(tmp_path: Path) -> Stamp:
    (tmp_path / "bin").mkdir()
    paths = [tmp_path / "bin" / name for name in ("libllama.so.0", "llama-server")]
    for path in paths:
        path.write_text(path.name)
    stamp = _stamp(artefacts=buildstamp.describe(tmp_path, paths), load=LoadCheck(status="passed"))
    buildstamp.write(tmp_path, stamp)
    return stamp


def test_round_trip(tmp_path: Path, finished: Stamp) -> None:
    assert buildstamp.read(tmp_path) == finished
    assert not list(tmp_path.glob(".*.part"))


def test_the_same_inputs_need_no_build(tmp_path: Path, finished: Stamp) -> None:
    assert buildstamp.reasons(finished, _stamp(), tmp_path, begun=True) == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"tree": "b" * 40, "arguments": ("-DGGML_NATIVE=ON", "-DLLAMA_BUILD_COMMIT=tqforge-bbbbbbbbbbbb")},
            "the source tree changed: aaaaaaaaaaaa -> bbbbbbbbbbbb",
        ),
        ({"commit": "d" * 40}, "the base changed: cccccccccccc -> dddddddddddd"),
        ({"checkout": "/elsewhere"}, "the checkout moved: /workspace/git/upstream -> /elsewhere"),
        (
            {"compilers": {"C": "/usr/bin/cc 12", "C++": "/usr/bin/c++ 13"}},
            "compiler changed: /usr/bin/c++ 12 -> /usr/bin/c++ 13",
        ),
        (
            {"tools": {"cmake": "/venv/cmake 4.1", "ninja": "/venv/ninja 1.13"}},
            "tool changed: /venv/cmake 4.0 -> /venv/cmake 4.1",
        ),
        ({"targets": ("llama", "llama-server", "llama-bench")}, "new targets: llama-bench"),
    ],
)
def test_each_change_is_named_once(tmp_path: Path, finished: Stamp, changes: dict[str, Any], reason: str) -> None:
    assert buildstamp.reasons(finished, _stamp(**changes), tmp_path, begun=True) == (reason,)


def test_a_changed_option_is_shown_with_both_values(tmp_path: Path, finished: Stamp) -> None:
    new = _stamp(arguments=("-DGGML_NATIVE=OFF", INPUTS["arguments"][1]))
    assert buildstamp.reasons(finished, new, tmp_path, begun=True) == ("options changed: GGML_NATIVE ON -> OFF",)


def test_many_changed_options_are_counted(tmp_path: Path, finished: Stamp) -> None:
    new = _stamp(arguments=(*INPUTS["arguments"], *(f"-DX{number}=ON" for number in range(9))))
    (reason,) = buildstamp.reasons(finished, new, tmp_path, begun=True)
    assert reason == "options changed: X0 unset -> ON, X1 unset -> ON, X2 unset -> ON and 6 more"


def test_a_missing_and_a_changed_file_are_noticed(tmp_path: Path, finished: Stamp) -> None:
    (tmp_path / "bin/libllama.so.0").unlink()
    os.utime(tmp_path / "bin/llama-server", ns=(1, 1))
    assert buildstamp.reasons(finished, _stamp(), tmp_path, begun=True) == (
        "missing: bin/libllama.so.0",
        "modified: bin/llama-server",
    )


@pytest.mark.parametrize(("begun", "reason"), [(False, "first build"), (True, "the last build was interrupted")])
def test_without_a_stamp(tmp_path: Path, begun: bool, reason: str) -> None:
    assert buildstamp.reasons(None, _stamp(), tmp_path, begun=begun) == (reason,)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 2}', '{"schema_version": 1, "surprise": 1}'])
def test_a_stamp_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / buildstamp.STAMP).write_text(text)
    assert buildstamp.read(tmp_path) is None


def test_the_id_follows_the_inputs_not_the_results(finished: Stamp) -> None:
    assert finished.id == _stamp().id
    assert finished.id != _stamp(tree="b" * 40).id


def test_a_stamp_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Earlier versions wrote `deferred` where this one writes `skipped`."""
    text = _stamp(load=LoadCheck(status="skipped", reason="offline")).model_dump_json()
    (tmp_path / buildstamp.STAMP).write_text(text.replace('"skipped"', '"deferred"'), encoding="utf-8")
    read = buildstamp.read(tmp_path)
    assert read
    assert read.load
    assert read.load.status == "skipped"
