"""The lines between parent and child process: one JSON object each.

Request  {"id": 1, "op": "Generate", "args": {...}}
Progress {"id": 1, "done": 512}
Reply    {"id": 1, "ok": {...}}  or  {"id": 1, "error": {"name": "LoadError", "what": ..., ...}}
"""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from tqforge import errors
from tqforge.adapters.llama.api import cache, measure, model
from tqforge.adapters.llama.api.messages import Message, Reply, Request, reply_type
from tqforge.errors import CrashError, TqforgeError

#: Every request by the name it has on the pipe.
REQUESTS: dict[str, type[Request[Any]]] = {
    kind.__name__: kind
    for module in (model, cache, measure)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Request) and kind.__module__ == module.__name__ and "[" not in name
}


class ErrorRecord(Message):
    """An exception as it crosses the pipe."""

    name: str
    what: str
    where: str = ""
    remedy: str = ""
    signal: str = ""


class RequestLine(Message):
    id: int
    op: str
    args: dict[str, Any]


class ReplyLine(Message):
    """Exactly one of `done`, `ok` and `error` is set."""

    id: int
    done: int | None = None
    ok: dict[str, Any] | None = None
    error: ErrorRecord | None = None


def request_line(number: int, request: Request[Any]) -> str:
    """Return a request as one line without its end."""
    line = RequestLine(id=number, op=type(request).__name__, args=request.model_dump(mode="json"))
    return line.model_dump_json()


def read_request(line: RequestLine) -> Request[Any]:
    """Return the request of a line. Raises ValueError for an unknown operation or wrong arguments."""
    kind = REQUESTS.get(line.op)
    if kind is None:
        raise ValueError(f"unknown operation {line.op!r}")
    return kind.model_validate_json(to_json(line.args))


def reply_line(number: int, reply: Message) -> str:
    """Return a reply as one line. Raises ValueError for numbers that are not finite."""
    ok = type(reply).model_validate(reply.model_dump())  # refuses what `model_construct` let through
    return ReplyLine(id=number, ok=ok.model_dump(mode="json")).model_dump_json()


def progress_line(number: int, done: int) -> str:
    return ReplyLine(id=number, done=done).model_dump_json()


def error_line(number: int, error: BaseException) -> str:
    return ReplyLine(id=number, error=to_record(error)).model_dump_json()


def read_reply(request: Request[Reply], content: dict[str, Any]) -> Reply:
    """Return the reply to a request. Raises ValueError if it is not of the type that the request names."""
    return reply_type(type(request)).model_validate_json(to_json(content))


def to_record(error: BaseException) -> ErrorRecord:
    """Return the record of an exception; foreign ones become a TqforgeError that starts with their class name."""
    if not isinstance(error, TqforgeError):
        error = TqforgeError(f"{type(error).__name__}: {error}", where="the llama.cpp child process")
    signal = error.signal if isinstance(error, CrashError) else ""
    return ErrorRecord(
        name=type(error).__name__, what=error.what, where=error.where, remedy=error.remedy, signal=signal
    )


def to_error(record: ErrorRecord) -> TqforgeError:
    """Return the exception that a record describes."""
    kinds = {kind.__name__: kind for kind in errors.error_classes()}
    kind = kinds.get(record.name, TqforgeError)
    if kind is CrashError:
        return CrashError(record.what, signal=record.signal, where=record.where, remedy=record.remedy)
    return kind(record.what, where=record.where, remedy=record.remedy)
