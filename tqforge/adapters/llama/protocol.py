"""What parent and child say to each other: one JSON object per line.

Request  {"id": 1, "op": "generate", "args": {...}}
Progress {"id": 1, "done": 512}
Reply    {"id": 1, "ok": {...}}  or  {"id": 1, "error": {"class": "LoadError", "what": ..., ...}}

Arrays longer than a prompt travel through `.npy` files, never through the pipe.
"""

from __future__ import annotations

import json
from typing import Any

from tqforge import errors
from tqforge.errors import TqforgeError

Message = dict[str, Any]


def encode(message: Message) -> str:
    """One line, without the line end. NaN is refused: it has no place in JSON."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode(line: str) -> Message:
    """The object of one line. Raises ValueError for anything else."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"not a message: {line[:80]!r}")
    return message


def error_message(error: BaseException) -> Message:
    """An exception as the `error` of a reply."""
    if isinstance(error, TqforgeError):
        return error.to_json()
    return TqforgeError(f"{type(error).__name__}: {error}", where="the llama.cpp child process").to_json()


def to_error(message: Message) -> TqforgeError:
    """The exception that `error_message` described."""
    kinds = {kind.__name__: kind for kind in errors.error_classes()}
    kind = kinds.get(str(message.get("class")), TqforgeError)
    return kind(str(message["what"]), where=str(message.get("where", "")), remedy=str(message.get("remedy", "")))
