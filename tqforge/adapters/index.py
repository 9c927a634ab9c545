"""Files from the Python package index, through pip and the user's own settings: mirror, proxy, certificates, cache.

pip gets one project at one version with its pinned sha256, and refuses another file before it opens it. The sha256 is
checked again here. Only a checked file reaches the workspace.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters import fs, proc
from tqforge.core.reporter import Reporter
from tqforge.errors import DiskFullError, DownloadError, IntegrityError

_MISMATCH = "DO NOT MATCH THE HASHES"
_NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectionError|Could not connect|Network is unreachable|ProxyError|Connection refused|"
    r"Temporary failure in name resolution|getaddrinfo|timed out|SSLError"
)
_PROGRESS = re.compile(r"^Progress (\d+) of (\d+)$")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One file of the index."""

    project: str
    version: str
    source: bool  # a source archive, else a wheel
    sha256: str = ""  # empty when the file is a part of something that is checked as a whole
    size: int | None = None  # for the progress only


def stored(downloads: Path, wanted: Wanted) -> Path | None:
    """Return the file in the workspace if it is there and matches its pin."""
    folder = downloads / wanted.sha256
    files = [path for path in folder.iterdir() if not path.name.startswith(".")] if folder.is_dir() else []
    return next((path for path in files if fs.sha256_file(path) == wanted.sha256), None)


def obtain(downloads: Path, wanted: Wanted, reporter: Reporter) -> Path:
    """Return the verified file, from the workspace or the index.

    Raises DownloadError, IntegrityError and DiskFullError.
    """
    if present := stored(downloads, wanted):
        return present
    with fs.disk_errors(downloads):
        downloads.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{wanted.project}.", suffix=".part", dir=downloads) as staging:
            file = download(Path(staging), wanted, reporter)
            target = downloads / wanted.sha256 / file.name
            with fs.atomic_path(target) as temporary:
                file.replace(temporary)
            return target


def pip(*words: str | Path) -> list[str | Path]:
    """Return a pip command line. `-P` keeps Python from running a `pip.py` in the current folder instead."""
    return [sys.executable, "-P", "-m", "pip", *words, "--disable-pip-version-check", "--no-input"]


def pip_argv(wanted: Wanted, requirements: Path, into: Path) -> list[str | Path]:
    """Return the pip command line that downloads one file and builds nothing."""
    kind = ["--no-build-isolation", "--no-binary", wanted.project] if wanted.source else ["--only-binary", ":all:"]
    hashes = ["--require-hashes"] if wanted.sha256 else []
    return pip("download", "--no-deps", "--progress-bar", "raw", *kind, *hashes, "-r", requirements, "-d", into)


def download(staging: Path, wanted: Wanted, reporter: Reporter) -> Path:
    """Download a file into a folder of the caller, and check it if it has a pin."""
    requirements = staging / "requirements.txt"
    pinned = f" --hash=sha256:{wanted.sha256}" if wanted.sha256 else ""
    requirements.write_text(f"{wanted.project}=={wanted.version}{pinned}\n", encoding="utf-8")
    scratch, into = staging / "tmp", staging / "out"
    scratch.mkdir()
    env = {"TMPDIR": str(scratch), "LC_ALL": "C.UTF-8", "PIP_REQUIRE_VIRTUALENV": None}
    with reporter.meter(f"download {wanted.project} {wanted.version}", wanted.size) as meter:

        def line(text: str) -> None:
            if found := _PROGRESS.match(text):
                meter.update(float(found[1]), f"{int(found[1]) / 1e6:.0f} MB")

        done = proc.run(pip_argv(wanted, requirements, into), env=env, check=False, on_line=line)
    if not done.ok:
        raise _failure(done, wanted)
    files = list(into.iterdir()) if into.is_dir() else []
    if len(files) != 1:
        raise DownloadError(f"pip downloaded {len(files)} files for {wanted.project} {wanted.version} instead of one.")
    if wanted.sha256 and (found := fs.sha256_file(files[0])) != wanted.sha256:
        raise _mismatch(wanted, f"its sha256 is {found}")
    return files[0]


def _mismatch(wanted: Wanted, how: str) -> IntegrityError:
    return IntegrityError(
        f"{wanted.project} {wanted.version} from your package index is not the pinned file: {how}.",
        where=f"pinned sha256 {wanted.sha256}",
        remedy="Nothing was kept. A mirror or proxy may have changed the file: check your package-index settings.",
    )


def _failure(done: proc.Completed, wanted: Wanted) -> Exception:
    text = done.stdout + done.stderr
    if _MISMATCH in text:
        got = re.search(r"Got\s+([0-9a-f]{64})", text)
        return _mismatch(wanted, f"its sha256 is {got[1]}" if got else "its sha256 differs")
    if fs.names_full_disk(text):
        return DiskFullError("The disk filled up during the download.")
    what = f"{wanted.project} {wanted.version} could not be downloaded"
    if _NO_NETWORK.search(text):
        what += ": the package index cannot be reached"
    elif "No matching distribution found" in text:
        what += ": your package index does not offer it, or cannot be reached"
    return DownloadError(f"{what}.", where=proc.last_error(text) or "pip gave no message")
