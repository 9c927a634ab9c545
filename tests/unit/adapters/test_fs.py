from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tqforge.adapters import fs
from tqforge.errors import DiskFullError, LockedError


def test_atomic_path_leaves_the_old_file_when_the_writer_fails(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    fs.write_text(target, "old")
    with pytest.raises(RuntimeError), fs.atomic_path(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_atomic_dir_replaces_a_folder_whole(tmp_path: Path) -> None:
    target = tmp_path / "tree"
    target.mkdir()
    (target / "stale").write_text("x")
    with fs.atomic_dir(target) as temporary:
        (temporary / "fresh").write_text("y")
    assert [path.name for path in target.iterdir()] == ["fresh"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiskFullError) as caught, fs.atomic_path(tmp_path / "big"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "big" in caught.value.where
    assert list(tmp_path.iterdir()) == []


def test_other_os_errors_pass_through(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), fs.disk_errors(tmp_path):
        raise PermissionError(errno.EACCES, "no")


def test_a_second_holder_is_refused_and_told_who_holds(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with fs.locked(path, "tqforge build"):
        with pytest.raises(LockedError, match="tqforge build"), fs.locked(path, "tqforge verify"):
            raise AssertionError("never reached")
    with fs.locked(path, "tqforge verify"):
        assert "verify" in path.read_text()


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".a.x1.part").write_text("half")
    (tmp_path / ".b.x2.part").mkdir()
    (tmp_path / "kept").write_text("whole")
    assert fs.remove_leftovers(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_sha256_counts_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    seen: list[int] = []
    assert fs.sha256_file(path, seen.append).startswith("ba7816bf8f01cfea")
    assert sum(seen) == 3
