"""The lines between parent and child process."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tqforge.adapters.llama import protocol
from tqforge.adapters.llama.api import measure, model
from tqforge.adapters.llama.api.messages import Message, Request, reply_type
from tqforge.adapters.llama.child import worker
from tqforge.errors import CacheTypeError, CrashError, TqforgeError


def through(error: BaseException) -> TqforgeError:
    """What the parent raises when the child raised `error`."""
    line = protocol.ReplyLine.model_validate_json(protocol.error_line(1, error))
    assert line.error is not None
    return protocol.to_error(line.error)


def test_an_error_crosses_the_pipe_with_its_class() -> None:
    got = through(CacheTypeError("no such type", where="lib", remedy="build"))
    assert type(got) is CacheTypeError
    assert (got.what, got.where, got.remedy) == ("no such type", "lib", "build")


def test_a_crash_keeps_its_signal() -> None:
    got = through(CrashError("died", signal="SIGSEGV"))
    assert isinstance(got, CrashError)
    assert got.signal == "SIGSEGV"


def test_an_unknown_exception_is_still_reported() -> None:
    got = through(ZeroDivisionError("x"))
    assert type(got) is TqforgeError
    assert "ZeroDivisionError: x" in got.what


def messages(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for any type that may stand in a message."""
    origin, inner = get_origin(kind), [one for one in get_args(kind) if one is not Ellipsis]
    if origin is tuple and Ellipsis in get_args(kind):
        return st.lists(messages(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(messages, inner))
    if origin is dict:
        return st.dictionaries(messages(inner[0]), messages(inner[1]), max_size=3)
    if inner:
        return st.one_of(*map(messages, inner))
    if issubclass(kind, Message):
        return st.builds(kind, **{name: messages(field.annotation) for name, field in kind.model_fields.items()})
    return PLAIN[kind]


PLAIN: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(max_size=9),
    int: st.integers(-(2**62), 2**62),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    Path: st.sampled_from([Path("/a b/\u00e9.npy"), Path("relative")]),
}
KINDS = list(protocol.REQUESTS.values())
NAMES = list(protocol.REQUESTS)


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_every_request_and_its_reply_survive_the_pipe(kind: type[Request[Any]], data: st.DataObject) -> None:
    asked, reply = data.draw(messages(kind)), data.draw(messages(reply_type(kind)))
    line = protocol.request_line(5, asked)
    assert "\n" not in line
    assert protocol.read_request(protocol.RequestLine.model_validate_json(line)) == asked
    answer = protocol.ReplyLine.model_validate_json(protocol.reply_line(5, reply))
    assert answer.ok is not None
    assert protocol.read_reply(asked, answer.ok) == reply


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_every_request_is_strict(kind: type[Request[Any]]) -> None:
    """An unknown field is refused, and so is the absence of a required one."""
    with pytest.raises(ValueError, match="extra_forbidden"):
        protocol.read_request(protocol.RequestLine(id=1, op=kind.__name__, args={"unknown": 1}))
    if any(field.is_required() for field in kind.model_fields.values()):
        with pytest.raises(ValueError, match="missing"):
            protocol.read_request(protocol.RequestLine(id=1, op=kind.__name__, args={}))


def test_every_request_has_one_handler_and_a_reply_type() -> None:
    handlers = worker.Worker().handlers
    assert set(handlers) == set(protocol.REQUESTS.values())
    assert all(issubclass(reply_type(kind), Message) for kind in handlers)


@pytest.mark.parametrize(
    ("op", "args"),
    [("Nonsense", {}), ("Generate", {"limit": "many"}), ("Generate", {"limit": "4"}), ("Tokenize", {"texts": "a"})],
)
def test_wrong_requests_are_refused(op: str, args: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"unknown operation|validation error"):
        protocol.read_request(protocol.RequestLine(id=1, op=op, args=args))


@pytest.mark.parametrize("content", [{}, {"tokens": [[1]], "text": "x"}, {"tokens": "1"}])
def test_wrong_replies_are_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        protocol.read_reply(model.Tokenize(texts=("a",)), content)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_refused(value: float) -> None:
    reply = measure.BenchTime.model_construct(seconds=value, cpu=1.0)
    with pytest.raises(ValueError, match="finite"):
        protocol.reply_line(1, reply)


def test_the_worker_answers_every_request_even_before_a_library_is_loaded() -> None:
    replies = io.StringIO()
    lines = [
        protocol.request_line(1, model.Tokenize(texts=("a",))),
        protocol.RequestLine(id=2, op="Nonsense", args={}).model_dump_json(),
        protocol.request_line(3, measure.CloseBench()),
    ]
    worker.serve(io.StringIO("\n".join(lines)), replies)
    first, second, third = map(protocol.ReplyLine.model_validate_json, replies.getvalue().splitlines())
    assert first.error is not None
    assert (first.id, first.error.name) == (1, "LoadError")
    assert second.error is not None
    assert "Nonsense" in second.error.what
    assert third.ok == {}
