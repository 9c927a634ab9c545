"""The pip command line, and what is made of pip's failures. The real pip is tested in tests/repo."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tqforge.adapters import index, proc
from tqforge.adapters.console import Output
from tqforge.adapters.index import Wanted
from tqforge.errors import DiskFullError, DownloadError, IntegrityError

CONTENT = b"an archive"
PIN = hashlib.sha256(CONTENT).hexdigest()
WANTED = Wanted(project="toy", version="1.0", source=True, sha256=PIN, size=10)


def pip_says(monkeypatch: pytest.MonkeyPatch, code: int, text: str = "", files: tuple[str, ...] = ()) -> list[Any]:
    """Replace pip by a program that writes files into its target folder, and return the calls."""
    calls: list[Any] = []

    def run(argv: list[str | Path], **options: Any) -> proc.Completed:
        calls.append((argv, options))
        for name in files:
            into = Path(argv[argv.index("-d") + 1])
            into.mkdir(exist_ok=True)
            (into / name).write_bytes(CONTENT)
        options["on_line"]("Progress 5 of 10")
        options["on_line"]("Saved toy.tar.gz")
        return proc.Completed(argv=tuple(map(str, argv)), code=code, stdout="", stderr=text, seconds=0.1)

    monkeypatch.setattr(proc, "run", run)
    return calls


def test_a_source_archive_is_not_built_and_a_wheel_is_not_replaced_by_source() -> None:
    source = [str(word) for word in index.pip_argv(WANTED, Path("r.txt"), Path("out"))]
    assert source[source.index("--no-binary") + 1] == "toy"
    assert "--require-hashes" in source
    wheel = [str(word) for word in index.pip_argv(replace(WANTED, source=False), Path("r.txt"), Path("out"))]
    assert wheel[wheel.index("--only-binary") + 1] == ":all:"
    assert "--no-binary" not in wheel


def test_a_file_without_a_pin_of_its_own_does_not_require_hashes() -> None:
    assert "--require-hashes" not in index.pip_argv(replace(WANTED, sha256=""), Path("r.txt"), Path("out"))


def test_pip_does_not_run_from_the_current_folder() -> None:
    assert index.pip("list")[1:4] == ["-P", "-m", "pip"]


def test_the_pin_is_written_for_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pip_says(monkeypatch, 0, files=("toy-1.0.tar.gz",))
    assert index.download(tmp_path, WANTED, Output(quiet=True)).read_bytes() == CONTENT
    assert (tmp_path / "requirements.txt").read_text(encoding="utf-8") == f"toy==1.0 --hash=sha256:{PIN}\n"
    assert calls[0][1]["env"]["TMPDIR"] == str(tmp_path / "tmp")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (f"THESE PACKAGES DO NOT MATCH THE HASHES\n   Got    {'b' * 64}", IntegrityError, f"sha256 is {'b' * 64}"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", IntegrityError, "its sha256 differs"),
        ("OSError: [Errno 28] No space left on device", DiskFullError, "The disk filled up"),
        ("NewConnectionError: refused", DownloadError, "the package index cannot be reached"),
        ("SSLError(CERTIFICATE_VERIFY_FAILED)", DownloadError, "the package index cannot be reached"),
        ("ERROR: No matching distribution found for toy==1.0", DownloadError, "your package index does not offer it"),
        ("ERROR: something else", DownloadError, r"toy 1\.0 could not be downloaded\."),
    ],
)
def test_each_failure_of_pip_has_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, error: type[Exception], message: str
) -> None:
    pip_says(monkeypatch, 1, text)
    with pytest.raises(error, match=message):
        index.download(tmp_path, WANTED, Output(quiet=True))


def test_a_silent_failure_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_says(monkeypatch, 1)
    with pytest.raises(DownloadError) as caught:
        index.download(tmp_path, WANTED, Output(quiet=True))
    assert caught.value.where == "pip gave no message"


@pytest.mark.parametrize("files", [(), ("one.whl", "two.whl")])
def test_pip_must_bring_exactly_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...]
) -> None:
    pip_says(monkeypatch, 0, files=files)
    with pytest.raises(DownloadError, match=f"downloaded {len(files)} files"):
        index.download(tmp_path, WANTED, Output(quiet=True))


def test_the_sha256_is_checked_again_after_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_says(monkeypatch, 0, files=("toy-1.0.tar.gz",))
    with pytest.raises(IntegrityError, match=f"its sha256 is {PIN}"):
        index.download(tmp_path, replace(WANTED, sha256="0" * 64), Output(quiet=True))


def test_a_stored_file_needs_no_pip_unless_it_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pip_says(monkeypatch, 0, files=("toy-1.0.tar.gz",))
    first = index.obtain(tmp_path, WANTED, Output(quiet=True))
    assert first == tmp_path / PIN / "toy-1.0.tar.gz"
    assert index.obtain(tmp_path, WANTED, Output(quiet=True)) == first
    assert len(calls) == 1
    first.write_bytes(b"damaged")
    assert index.stored(tmp_path, WANTED) is None
    assert index.obtain(tmp_path, WANTED, Output(quiet=True)).read_bytes() == CONTENT
    assert len(calls) == 2
