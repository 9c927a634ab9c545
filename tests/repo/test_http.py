"""Downloads by address from a server on this machine that is slow, broken, wrong, moved or gone."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tqforge.adapters import http
from tqforge.adapters.console import Output
from tqforge.adapters.http import download
from tqforge.base.models import fetch_model_file
from tqforge.core.values import ModelPin
from tqforge.errors import DownloadError, IntegrityError
from tqforge.workspace import Workspace

CONTENT = b"GGUF" + bytes(range(256)) * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT. `cut` bytes are sent before the connection breaks; each request uses up one entry."""

    content: bytes = CONTENT
    etag: str = '"v1"'
    cuts: list[int]
    requests: list[tuple[str, str]]
    location: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/model.gguf"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range", "")
        server.requests.append((self.path, wanted))
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", server.location)
            self.end_headers()
        elif self.path in ("/missing", "/broken"):
            self.send_error(404 if self.path == "/missing" else 503)
        else:
            self.send_content(wanted)

    def send_content(self, wanted: str) -> None:
        server = self.server
        start = int(wanted.removeprefix("bytes=").removesuffix("-") or 0)
        if self.headers.get("If-Range", "") != server.etag:
            start = 0
        if start and start >= len(server.content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        self.send_header("ETag", server.etag)
        body = server.content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path == "/slow":
            self.wfile.write(body[:10])
            self.wfile.flush()
            time.sleep(1.5)
        self.wfile.write(body[: server.cuts.pop(0)] if server.cuts else body)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.cuts, made.requests = [], []
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "models" / "model.gguf"


def fetch(url: str, target: Path, sha256: str = SHA256) -> None:
    download(url, target, sha256, Output(quiet=True))


def left(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir()) if target.parent.exists() else []


def test_a_file_is_put_in_place_whole(server: Server, target: Path) -> None:
    fetch(server.url, target)
    assert target.read_bytes() == CONTENT
    assert left(target) == ["model.gguf"]


def test_a_broken_connection_is_resumed_in_the_same_call(server: Server, target: Path) -> None:
    server.cuts = [131072, 196608]
    fetch(server.url, target)
    assert target.read_bytes() == CONTENT
    assert [wanted for _, wanted in server.requests] == ["", "bytes=131072-", "bytes=327680-"]


def test_an_interrupted_download_is_resumed_by_the_next_call(server: Server, target: Path) -> None:
    server.cuts = [65536, 0, 0, 0]
    with pytest.raises(DownloadError, match="after 65536 bytes, which are kept"):
        fetch(server.url, target)
    assert not target.exists()
    fetch(server.url, target)
    assert target.read_bytes() == CONTENT
    assert server.requests[-1][1] == "bytes=65536-"
    assert left(target) == ["model.gguf"]


def test_a_file_that_changed_meanwhile_is_downloaded_from_its_start(server: Server, target: Path) -> None:
    server.content, server.etag, server.cuts = b"old" * 100_000, '"v0"', [70_000, 0, 0, 0]
    with pytest.raises(DownloadError):
        fetch(server.url, target)
    server.content, server.etag = CONTENT, '"v1"'
    fetch(server.url, target)
    assert target.read_bytes() == CONTENT


def test_a_server_without_a_validator_is_asked_for_the_whole_file(server: Server, target: Path) -> None:
    server.etag, server.cuts = "", [70_000]
    fetch(server.url, target)
    assert target.read_bytes() == CONTENT
    assert [wanted for _, wanted in server.requests] == ["", ""]


def test_a_partial_file_that_is_too_long_is_dropped(server: Server, target: Path) -> None:
    server.cuts = [70_000, 0, 0, 0]
    with pytest.raises(DownloadError):
        fetch(server.url, target)
    partial = target.with_name(".model.gguf.download")
    partial.write_bytes(CONTENT + b"more")
    fetch(server.url, target)
    assert target.read_bytes() == CONTENT


def test_a_truncated_file_is_never_put_in_place(server: Server, target: Path) -> None:
    server.cuts = [len(CONTENT) - 1, 0, 0, 0]
    with pytest.raises(DownloadError, match="broke off"):
        fetch(server.url, target)
    assert "model.gguf" not in left(target)


def test_a_wrong_file_is_removed(server: Server, target: Path) -> None:
    with pytest.raises(IntegrityError, match=SHA256):
        fetch(server.url, target, "0" * 64)
    assert left(target) == []


def test_a_missing_file_is_not_tried_again(server: Server, target: Path) -> None:
    with pytest.raises(DownloadError, match="404"):
        fetch(server.url.replace("model.gguf", "missing"), target)
    assert len(server.requests) == 1
    assert left(target) == []


def test_a_server_error_is_tried_again(server: Server, target: Path) -> None:
    with pytest.raises(DownloadError, match="503"):
        fetch(server.url.replace("model.gguf", "broken"), target)
    assert len(server.requests) > 1


def test_a_server_that_sends_nothing_more_is_a_timeout(
    server: Server, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_TIMEOUT", (1.0, 0.2))
    with pytest.raises(DownloadError, match="broke off"):
        fetch(server.url.replace("model.gguf", "slow"), target)


def test_nobody_listens(target: Path) -> None:
    with pytest.raises(DownloadError, match="broke off"):
        fetch("http://127.0.0.1:9/model.gguf", target)
    assert left(target) == []


def test_an_address_without_a_known_scheme(target: Path) -> None:
    with pytest.raises(DownloadError, match="cannot be downloaded"):
        fetch("ftp://127.0.0.1/model.gguf", target)


def test_a_redirect_to_another_host_is_followed(server: Server, target: Path) -> None:
    """As pip does: the sha256 decides about the file, not the host."""
    server.location = server.url.replace("127.0.0.1", "localhost")
    fetch(server.url.replace("model.gguf", "moved"), target)
    assert target.read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == ["/moved", "/model.gguf"]


def test_a_pinned_model_by_address(server: Server, target: Path, tmp_path: Path) -> None:
    workspace, out = Workspace(tmp_path / "ws"), Output(quiet=True)
    pin = ModelPin(name="toy", title="Toy", license="MIT", file="toy.gguf", sha256=SHA256, url=server.url)
    path = fetch_model_file(workspace, out, pin)
    assert path.read_bytes() == CONTENT
    assert fetch_model_file(workspace, out, pin) == path
    assert len(server.requests) == 1
