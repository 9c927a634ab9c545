"""Which part of a file is asked for, and what is done with the answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from requests import Response

from tqforge.adapters.http import _Partial, _refuse_downgrade
from tqforge.errors import DownloadError

URL = "https://example.org/model.gguf"


def response(status: int = 200, url: str = URL, **headers: str) -> Response:
    made = Response()
    made.status_code, made.url = status, url
    made.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    return made


@pytest.fixture
def partial(tmp_path: Path) -> _Partial:
    return _Partial(tmp_path / "model.gguf", URL)


def test_a_first_request_asks_for_everything(partial: _Partial) -> None:
    assert partial.request_headers() == {}


@pytest.mark.parametrize(
    ("headers", "validator"),
    [
        ({"ETag": '"strong"', "Last_Modified": "yesterday"}, '"strong"'),
        ({"ETag": 'W/"weak"', "Last_Modified": "yesterday"}, "yesterday"),
        ({"Last_Modified": "yesterday"}, "yesterday"),
        ({"ETag": 'W/"weak"'}, None),
        ({}, None),
    ],
)
def test_the_rest_is_asked_for_on_condition_that_the_file_is_the_same(
    partial: _Partial, headers: dict[str, str], validator: str | None
) -> None:
    answer = response()
    answer.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    assert partial.begin(answer) == 0
    partial.path.write_bytes(b"12345")
    asked = {"Range": "bytes=5-", "If-Range": validator} if validator else {}
    assert partial.request_headers() == asked


def test_the_partial_file_of_another_address_is_not_continued(partial: _Partial, tmp_path: Path) -> None:
    partial.begin(response(ETag='"v1"'))
    partial.path.write_bytes(b"12345")
    assert _Partial(tmp_path / "model.gguf", f"{URL}?other").request_headers() == {}


@pytest.mark.parametrize("note", ["", "{", "[]", '{"url": 1}', "null"])
def test_a_damaged_note_means_a_new_start(partial: _Partial, note: str) -> None:
    partial.begin(response(ETag='"v1"'))
    partial.path.write_bytes(b"12345")
    partial.path.with_name(".model.gguf.download.json").write_text(note, encoding="utf-8")
    assert partial.request_headers() == {}


def test_a_whole_answer_replaces_the_part(partial: _Partial) -> None:
    partial.begin(response(ETag='"v1"'))
    partial.path.write_bytes(b"12345")
    assert partial.begin(response(206, Content_Range="bytes 5-9/10")) == 5
    assert partial.size == 5
    assert partial.begin(response(200, ETag='"v2"')) == 0
    assert partial.size == 0


@pytest.mark.parametrize("answer", ["", "bytes 0-9/10", "bytes 50-59/60", "bytes */10"])
def test_another_part_than_the_one_asked_for_is_refused(partial: _Partial, answer: str) -> None:
    partial.begin(response(ETag='"v1"'))
    partial.path.write_bytes(b"12345")
    with pytest.raises(DownloadError, match="another part"):
        partial.begin(response(206, Content_Range=answer))


def test_a_redirect_to_an_unencrypted_address_is_refused() -> None:
    final = response(url="http://example.org/model.gguf")
    final.history = [response(302)]
    with pytest.raises(DownloadError, match="unencrypted"):
        _refuse_downgrade(final)
    final.url = "https://other.example/model.gguf"
    _refuse_downgrade(final)
