"""Base classes of the messages between tqforge and the llama.cpp child process."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """Immutable and strict: unknown or missing fields, other types and numbers that are not finite are errors."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants"
    )


Reply = TypeVar("Reply", bound=Message)


class Request(Message, Generic[Reply]):
    """A message that is answered with a `Reply`."""


def reply_type(request: type[Request[Reply]]) -> type[Reply]:
    """Return the type of the reply to a type of request."""
    found: type[Reply] = next(
        base.__pydantic_generic_metadata__["args"][0]
        for base in request.__mro__
        if issubclass(base, Request) and base.__pydantic_generic_metadata__["args"]
    )
    return found


class Done(Message):
    """The reply of a request that only has an effect."""
