"""Files from the Python package index, by the user's own settings: mirror, proxy, certificates, cache.

pip is asked for one project at one version with its pinned sha256, so pip itself refuses another file before it
opens it; the sha256 is checked once more here. Only a checked file reaches the workspace.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters import fs, proc
from tqforge.adapters.console import Output
from tqforge.errors import DiskFullError, DownloadError, IntegrityError

_MISMATCH = "DO NOT MATCH THE HASHES"
_NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectionError|Could not connect|Network is unreachable|ProxyError|Connection refused|"
    r"Temporary failure in name resolution|getaddrinfo|timed out|SSLError"
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One file of the index."""

    project: str
    version: str
    sha256: str
    source: bool  # a source archive, else a wheel
    size: int | None = None  # for the progress only


def stored(downloads: Path, wanted: Wanted) -> Path | None:
    """The file in the workspace, if it is there and still is what is pinned."""
    folder = downloads / wanted.sha256
    files = [path for path in folder.iterdir() if not path.name.startswith(".")] if folder.is_dir() else []
    return next((path for path in files if fs.sha256_file(path) == wanted.sha256), None)


def obtain(downloads: Path, wanted: Wanted, out: Output) -> Path:
    """The verified file, from the workspace or the index. Raises DownloadError, IntegrityError, DiskFullError."""
    if present := stored(downloads, wanted):
        return present
    with fs.disk_errors(downloads):
        downloads.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{wanted.project}.", suffix=".part", dir=downloads) as staging:
            file = _download(Path(staging), wanted, out)
            target = downloads / wanted.sha256 / file.name
            with fs.atomic_path(target) as temporary:
                file.replace(temporary)
            return target


def pip_argv(wanted: Wanted, requirements: Path, into: Path) -> list[str]:
    """The pip call that fetches one file and nothing else."""
    kind = ["--no-build-isolation", "--no-binary", wanted.project] if wanted.source else ["--only-binary", ":all:"]
    return [
        *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"),
        *("--progress-bar", "off", *kind, "--require-hashes", "-r", str(requirements), "-d", str(into)),
    ]


def _download(staging: Path, wanted: Wanted, out: Output) -> Path:
    requirements = staging / "requirements.txt"
    requirements.write_text(f"{wanted.project}=={wanted.version} --hash=sha256:{wanted.sha256}\n", encoding="utf-8")
    scratch, into = staging / "tmp", staging / "out"
    scratch.mkdir()
    argv = pip_argv(wanted, requirements, into)
    env = {"TMPDIR": str(scratch), "LC_ALL": "C.UTF-8", "PIP_REQUIRE_VIRTUALENV": None}
    title = f"download {wanted.project} {wanted.version}"
    with out.meter(title, wanted.size) as meter, _watched(scratch, meter.update):
        done = proc.run(argv, env=env, check=False)
    if not done.ok:
        raise _failure(done, wanted)
    files = list(into.iterdir())
    if len(files) != 1:
        raise DownloadError(f"pip fetched {len(files)} files for {wanted.project} {wanted.version}, not one.")
    if (found := fs.sha256_file(files[0])) != wanted.sha256:
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
    if "No space left on device" in text:
        return DiskFullError("The disk filled up during the download.")
    what = f"{wanted.project} {wanted.version} could not be downloaded"
    if _NO_NETWORK.search(text):
        return DownloadError(f"{what}: the package index cannot be reached.", where=_last_line(text))
    if "No matching distribution found" in text:
        what += ": your package index does not offer it, or cannot be reached"
    return DownloadError(f"{what}.", where=_last_line(text))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("ERROR:")]
    return (lines or text.strip().splitlines() or ["pip gave no message"])[-1]


@contextmanager
def _watched(folder: Path, report: Callable[[float, str], None]) -> Iterator[None]:
    """Report how much pip has written so far, four times a second."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.25):
            size = _largest(folder)
            report(float(size), f"{size / 1e6:.0f} MB")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _largest(folder: Path) -> int:
    """The size of the archive that pip is writing: `pip-unpack-*/<file>`."""
    size = 0
    for path in folder.glob("pip-unpack-*/*"):
        try:
            size = max(size, path.stat().st_size)
        except OSError:  # pip moved it away meanwhile
            continue
    return size
