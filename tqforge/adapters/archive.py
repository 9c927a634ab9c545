"""Extract the wanted members of an archive. Its sha256 was checked before, and its paths are checked all the same."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath

from tqforge.adapters import fs
from tqforge.errors import ArchiveError

_REMEDY = "Nothing was kept. Remove the file and get it again from a source you trust."
_TRUNCATED = (EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error)


def _refuse(archive: Path, why: object) -> ArchiveError:
    return ArchiveError(f"The archive is refused: {why}.", where=str(archive), remedy=_REMEDY)


def _broken(archive: Path, error: Exception) -> ArchiveError:
    return ArchiveError(f"The archive is truncated or corrupt: {error}", where=str(archive), remedy=_REMEDY)


class _Filter:
    """Python's data filter below the archive's top folder, and stricter: nothing twice, through a link or renamed."""

    def __init__(self, root: Path) -> None:
        self._root = str(root.resolve())
        self._files: set[PurePosixPath] = set()
        self._links: set[PurePosixPath] = set()

    def check(self, member: tarfile.TarInfo) -> PurePosixPath:
        """Return the member's path below the top folder. Raises tarfile.FilterError, or ValueError with the reason."""
        if member.name.startswith("/") or "\\" in member.name or ".." in member.name.split("/"):
            raise ValueError(f"{member.name!r} is not a plain relative path")  # the data filter would change some
        if member.islnk():
            raise ValueError(f"{member.name!r} is a hard link")
        path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
        tarfile.data_filter(member.replace(name=str(path)), self._root)
        if not self._links.isdisjoint(path.parents):
            raise ValueError(f"{member.name!r} goes through a link")
        if path in self._files:
            raise ValueError(f"{member.name!r} is in it twice")
        if not member.isdir():
            self._files.add(path)
        if member.issym():
            self._links.add(path)
        return path


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
    Raises ArchiveError; the caller extracts into a folder that is removed then.
    """
    counts = dict.fromkeys(wanted, 0)
    first = next(iter(wanted.values()))
    allowed = _Filter(first)
    try:
        with fs.disk_errors(first), tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                path = allowed.check(member)
                if progress:
                    progress(member.offset)
                prefix = next((name for name in wanted if path.is_relative_to(name)), None)
                if prefix is None or member.isdir() or str(path.relative_to(prefix)) in skip:
                    continue
                _write_member(tar, member, wanted[prefix] / path.relative_to(prefix))
                counts[prefix] += 1
            while tar.fileobj and tar.fileobj.read(1 << 20):  # the checksum is behind the last member
                pass
    except (tarfile.FilterError, FileExistsError, ValueError) as error:
        raise _refuse(archive, error) from error
    except _TRUNCATED as error:
        raise _broken(archive, error) from error
    for prefix, count in counts.items():
        if not count:
            raise ArchiveError(f"The archive holds no folder '{prefix}'.", where=str(archive), remedy=_REMEDY)
    return counts


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
        return
    stream = tar.extractfile(member)
    assert stream is not None  # a regular file
    with stream, target.open("xb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)
    target.chmod(0o755 if member.mode & 0o100 else 0o644)


def append_zip_member(archive: Path, filename: str, target: Path) -> None:
    """Append the one member of a zip archive (a wheel) whose file name is `filename` to a file. Raises ArchiveError."""
    try:
        with zipfile.ZipFile(archive) as bundle:
            found = [name for name in bundle.namelist() if PurePosixPath(name).name == filename]
            if len(found) != 1:
                raise ArchiveError(
                    f"The wheel holds '{filename}' {len(found)} times instead of once.",
                    where=str(archive),
                    remedy=_REMEDY,
                )
            with fs.disk_errors(target), bundle.open(found[0]) as stream, target.open("ab") as out:
                shutil.copyfileobj(stream, out, 1 << 20)
    except _TRUNCATED as error:
        raise _broken(archive, error) from error
