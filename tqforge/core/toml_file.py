"""Read TOML data files under a schema, with one clear message for the first error."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tqforge.errors import ConfigError


class Entry(BaseModel):
    """A part of a data file. The key `schema` is the field `schema_`."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.rstrip("_"))


Parsed = TypeVar("Parsed", bound=BaseModel)


def read(path: Path, kind: type[Parsed], what: str, *, remedy: str = "", text: str | None = None) -> Parsed:
    """Read a file, or `text` as its content. Raises ConfigError."""
    try:
        return kind.model_validate(tomllib.loads(path.read_text(encoding="utf-8") if text is None else text))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{what} cannot be read: {error}", where=str(path), remedy=remedy) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{place}: {first['msg']}", where=str(path), remedy=remedy or "Correct that key.") from error
