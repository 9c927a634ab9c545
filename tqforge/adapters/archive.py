"""Take the wanted members out of an archive that was checked by its sha256, and still trust none of its paths."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from tqforge.adapters import fs
from tqforge.errors import ArchiveError

_REMEDY = "Nothing was kept. Remove the file and fetch it again from a source you trust."
_TRUNCATED = (EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error)


def _refuse(archive: Path, name: str, why: str) -> ArchiveError:
    return ArchiveError(f"The archive is refused: {why}: {name!r}.", where=str(archive), remedy=_REMEDY)


def _broken(archive: Path, error: Exception) -> ArchiveError:
    return ArchiveError(f"The archive is truncated or corrupt: {error}", where=str(archive), remedy=_REMEDY)


def checked_path(archive: Path, name: str) -> PurePosixPath:
    """The member's path, relative and without steps upward. Raises ArchiveError."""
    path = PurePosixPath(name)
    if not name or "\0" in name or "\\" in name:
        raise _refuse(archive, name, "a name that is not portable")
    if path.is_absolute():
        raise _refuse(archive, name, "an absolute path")
    if ".." in path.parts:
        raise _refuse(archive, name, "a path that leaves the target")
    return path


def _checked_link(archive: Path, member: tarfile.TarInfo, path: PurePosixPath) -> None:
    """A symbolic link must point inside the archive's own top folder."""
    target = PurePosixPath(member.linkname)
    if target.is_absolute():
        raise _refuse(archive, member.name, "a link to an absolute path")
    depth = len(path.parent.parts) - 1  # below the top folder
    for part in target.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise _refuse(archive, member.name, "a link that leaves the target")


def _checked_kind(archive: Path, member: tarfile.TarInfo, path: PurePosixPath) -> None:
    if member.issym():
        _checked_link(archive, member, path)
    elif member.islnk():
        raise _refuse(archive, member.name, "a hard link")
    elif not (member.isreg() or member.isdir()):
        raise _refuse(archive, member.name, "a device, fifo or other special member")


def _destination(path: PurePosixPath, wanted: Mapping[str, Path]) -> tuple[Path, PurePosixPath] | None:
    """Where a member (without the archive's top folder) goes: the target folder and the path inside it."""
    for prefix, target in wanted.items():
        if path.is_relative_to(prefix):
            return target, path.relative_to(prefix)
    return None


def extract_tar(
    archive: Path,
    wanted: Mapping[str, Path],
    *,
    skip: Collection[str] = (),
    progress: Callable[[int], None] | None = None,
) -> dict[str, int]:
    """Extract folders of a `.tar.gz`: `wanted` maps a folder below the archive's top folder to its target.

    Every member is checked, also those that are not wanted; one hostile member refuses the archive. `skip` names
    paths inside a wanted folder that are left out. Returns the number of files per wanted folder.
    Raises ArchiveError; the caller extracts into a folder that is thrown away then.
    """
    counts = dict.fromkeys(wanted, 0)
    seen: set[PurePosixPath] = set()
    links: set[PurePosixPath] = set()
    try:
        with fs.disk_errors(next(iter(wanted.values()))), tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                path = checked_path(archive, member.name)
                if progress:
                    progress(member.offset)
                if not member.isdir():
                    if path in seen:
                        raise _refuse(archive, member.name, "a member that is there twice")
                    seen.add(path)
                _checked_kind(archive, member, path)
                if not links.isdisjoint(path.parents):
                    raise _refuse(archive, member.name, "a path through a link")
                if member.issym():
                    links.add(path)
                if member.isdir() or not (found := _destination(PurePosixPath(*path.parts[1:]), wanted)):
                    continue
                target, inside = found
                if str(inside) not in skip:
                    _write_member(tar, member, target / inside)
                    counts[_key(wanted, target)] += 1
            _read_to_the_end(tar)
    except _TRUNCATED as error:
        raise _broken(archive, error) from error
    except FileExistsError as error:
        raise _refuse(archive, str(error.filename), "a member that is there twice") from error
    _all_present(archive, counts)
    return counts


def _read_to_the_end(tar: tarfile.TarFile) -> None:
    """The checksum of the compressed stream stands behind the last member."""
    while tar.fileobj and tar.fileobj.read(1 << 20):
        pass


def _key(wanted: Mapping[str, Path], target: Path) -> str:
    return next(prefix for prefix, folder in wanted.items() if folder == target)


def _all_present(archive: Path, counts: Mapping[str, int]) -> None:
    for prefix, count in counts.items():
        if not count:
            raise ArchiveError(f"The archive holds no folder '{prefix}'.", where=str(archive), remedy=_REMEDY)


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
        return
    stream = tar.extractfile(member)
    assert stream is not None  # a regular member, checked before
    with stream, target.open("xb") as out:
        _copy(stream, out)
    target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _copy(source: IO[bytes], out: IO[bytes]) -> None:
    shutil.copyfileobj(source, out, 1 << 20)


def extract_zip_member(archive: Path, filename: str, target: Path) -> None:
    """Write the one member of a zip archive (a wheel) whose file name is `filename`. Raises ArchiveError."""
    try:
        with zipfile.ZipFile(archive) as bundle:
            found = [item for item in bundle.infolist() if checked_path(archive, item.filename).name == filename]
            if len(found) != 1:
                raise ArchiveError(
                    f"The wheel holds '{filename}' {len(found)} times, not once.", where=str(archive), remedy=_REMEDY
                )
            with fs.disk_errors(target), bundle.open(found[0]) as stream, target.open("wb") as out:
                _copy(stream, out)
    except _TRUNCATED as error:
        raise _broken(archive, error) from error
