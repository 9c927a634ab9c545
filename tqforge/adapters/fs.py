"""Write files atomically, recognize full disks, and lock the workspace."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tqforge.adapters import proc
from tqforge.errors import DiskFullError, LockedError

_CHUNK = 1 << 20
_FULL_DISK = re.compile("No space left on device|Out of diskspace|Disk quota exceeded")
_ORPHAN_SECONDS = 15.0


def names_full_disk(text: str) -> bool:
    """Return whether the output of a program says that a disk is full."""
    return bool(_FULL_DISK.search(text))


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or an exceeded quota into DiskFullError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError("The disk is full.", where=str(path)) from error
        raise


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; on success it is synced and renamed over it, else removed."""
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(0o644)


@contextmanager
def atomic_dir(target: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `target`; on success it takes the place of `target`, else it is removed."""
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
        try:
            yield temporary
            temporary.chmod(0o755)
            if target.exists():
                shutil.rmtree(target)
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(folder: Path) -> int:
    """Remove the `.*.part` files of killed runs and return how many. The caller holds the workspace lock."""
    count = 0
    for part in folder.glob(".*.part") if folder.is_dir() else []:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
        count += 1
    return count


def sha256_file(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """Return the hex sha256 of a file; `progress` receives the size of each chunk."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            if progress:
                progress(len(chunk))
    return digest.hexdigest()


@contextmanager
def locked(path: Path, purpose: str) -> Iterator[None]:
    """Hold an exclusive lock on `path`. The kernel releases it when the holder and its children have exited.

    Raises LockedError at once while the holder runs; the children of a killed holder get a few seconds to exit.
    """
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", encoding="utf-8") as stream:
            _acquire(stream, path)
            stream.seek(0)
            stream.truncate()
            stream.write(f"`{purpose}` (process {os.getpid()})\n")
            stream.flush()
            try:
                with proc.shared(stream.fileno()):
                    yield
            finally:
                stream.seek(0)
                stream.truncate()


def _acquire(stream: TextIO, path: Path) -> None:
    deadline = time.monotonic() + _ORPHAN_SECONDS
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip()
            process = re.search(r"\(process (\d+)\)", holder)
            orphaned = process is not None and not _alive(int(process[1]))
            if orphaned and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            who = holder or "another tqforge"
            who = f"processes that {who} started before it was killed" if orphaned else who
            raise LockedError(f"The workspace is in use by {who}.", where=str(path)) from None
        return


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
