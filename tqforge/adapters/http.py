"""Downloads by address: pinned by sha256, resumed after an interruption, renamed into place when complete."""

from __future__ import annotations

import json
import os
from pathlib import Path

import requests  # noqa: TID251 - nothing else in tqforge uses HTTP

from tqforge.adapters import fs
from tqforge.core.reporter import Meter, Reporter
from tqforge.errors import DownloadError, IntegrityError

_ATTEMPTS = 4  # each resumes where the one before stopped
_TIMEOUT = (15.0, 60.0)  # seconds to connect, and between two pieces
_CHUNK = 1 << 16  # what a broken connection may lose
_RANGE_NOT_SATISFIABLE = 416


class _BrokenError(Exception):
    """The connection failed; another attempt may succeed."""


class _Partial:
    """The bytes received so far, and the validator (ETag or date) of the file they belong to."""

    def __init__(self, target: Path, url: str) -> None:
        self.path = target.with_name(f".{target.name}.download")
        self._note = target.with_name(f".{target.name}.download.json")
        self._url = url

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def request_headers(self) -> dict[str, str]:
        """Ask for the rest, on condition that the file is still the same."""
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            if self.size and note["url"] == self._url and note["validator"]:
                return {"Range": f"bytes={self.size}-", "If-Range": str(note["validator"])}
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return {}

    def begin(self, response: requests.Response) -> int:
        """Return where the body of a response starts, after dropping what it replaces."""
        start = f"bytes {self.size}-"
        if response.status_code == requests.codes.partial and self._continues(response, start):
            return self.size
        etag = response.headers.get("ETag", "")
        validator = etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified", "")
        self.remove()
        fs.write_text(self._note, json.dumps({"url": self._url, "validator": validator}))
        return 0

    @staticmethod
    def _continues(response: requests.Response, start: str) -> bool:
        if not response.headers.get("Content-Range", "").startswith(start):
            raise DownloadError("The server sent another part of the file than was asked for.", where=response.url)
        return True

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def download(url: str, target: Path, sha256: str, reporter: Reporter) -> None:
    """Download a file and put it at `target` once its sha256 matches.

    An interrupted download is resumed, in this call or the next. Proxies, certificates and credentials are those of
    the user's environment. Redirects are followed, also to another host, but not from https to http.
    Raises DownloadError, IntegrityError and DiskFullError.
    """
    partial = _Partial(target, url)
    with fs.disk_errors(target), reporter.meter(f"download {target.name}", 100.0) as meter:
        target.parent.mkdir(parents=True, exist_ok=True)
        with requests.Session() as session:
            _receive_all(session, url, partial, meter)
        found = fs.sha256_file(partial.path)
        if found != sha256:
            partial.remove()
            raise IntegrityError(
                f"{target.name} has sha256 {found}, the pin says {sha256}.",
                where=url,
                remedy="Nothing was kept. The file at that address has changed, or a proxy changed it.",
            )
        with partial.path.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.path.replace(target)
        partial.remove()


def _receive_all(session: requests.Session, url: str, partial: _Partial, meter: Meter) -> None:
    problem: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            _receive(session, url, partial, meter)
        except (_BrokenError, requests.ConnectionError, requests.Timeout) as error:
            problem = error
        except requests.RequestException as error:
            raise DownloadError(f"The address cannot be downloaded: {error}", where=url) from error
        else:
            return
    kept = f" after {partial.size} bytes, which are kept" if partial.size else ""
    raise DownloadError(f"The download broke off{kept}: {problem}", where=url) from problem


def _receive(session: requests.Session, url: str, partial: _Partial, meter: Meter) -> None:
    headers = {"Accept-Encoding": "identity", **partial.request_headers()}
    with session.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
        _refuse_downgrade(response)
        if response.status_code == _RANGE_NOT_SATISFIABLE:
            partial.remove()
            raise _BrokenError("the file on the server is shorter than the part that was received before")
        if response.status_code >= requests.codes.server_error:
            raise _BrokenError(f"the server answered {response.status_code} {response.reason}")
        if not response.ok:
            raise DownloadError(f"The server answered {response.status_code} {response.reason}.", where=response.url)
        done = partial.begin(response)
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isdigit() else None
        with partial.path.open("ab") as out:
            try:
                for piece in response.iter_content(_CHUNK):
                    out.write(piece)
                    done += len(piece)
                    meter.update(100.0 * done / total if total else 0.0, f"{done / 1e6:.0f} MB")
            except requests.exceptions.ChunkedEncodingError as error:
                raise _BrokenError(str(error)) from error
        if total is not None and done != total:
            raise _BrokenError(f"{done} of {total} bytes were received")


def _refuse_downgrade(response: requests.Response) -> None:
    urls = [step.url for step in response.history] + [response.url]
    if urls[0].startswith("https:") and any(not url.startswith("https:") for url in urls):
        raise DownloadError("The server redirects from https to an unencrypted address.", where=urls[-1])
