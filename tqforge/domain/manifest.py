"""`third_party/bases.toml` and `models.toml`: read, checked, turned into values."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from tqforge import resources
from tqforge.domain.model import Archive, Base, ModelPin, Wheel
from tqforge.errors import ConfigError, UsageError

Hex40 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Archive(_Entry):
    project: str
    version: str
    filename: str
    sha256: Hex64
    size: int | None = None
    source: str
    bindings: str
    license: str
    license_file: str


class _Base(_Entry):
    title: str
    repository: str
    commit: Hex40
    tree: Hex40
    license: str
    license_file: str
    build: int = 0
    archive: _Archive


class _Bases(_Entry):
    schema_: Literal[1]
    default: str
    bases: dict[str, _Base]

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.rstrip("_"))


class _Wheel(_Entry):
    project: str
    version: str
    sha256: Hex64
    size: int | None = None


class _Model(_Entry):
    title: str
    license: str
    file: str
    sha256: Hex64 | None = None
    wheel: _Wheel | None = None
    url: str | None = None


class _Models(_Entry):
    schema_: Literal[1]
    default: str
    models: dict[str, _Model]

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.rstrip("_"))


Parsed = TypeVar("Parsed", bound=BaseModel)


def _read(path: Path, kind: type[Parsed]) -> Parsed:
    try:
        return kind.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"The manifest cannot be read: {error}", where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{place}: {first['msg']}", where=str(path), remedy="Correct that key.") from error


def load_base(name: str | None = None, path: Path | None = None) -> Base:
    """The base of that name (the default one without). Raises UsageError for an unknown name."""
    table = _read(path or resources.third_party() / "bases.toml", _Bases)
    chosen = name or table.default
    entry = table.bases.get(chosen)
    if entry is None:
        raise UsageError(f"There is no base '{chosen}'.", remedy=f"Choose one of: {', '.join(sorted(table.bases))}.")
    archive = Archive(**entry.archive.model_dump(exclude={"license", "license_file"}))
    return Base(name=chosen, archive=archive, **entry.model_dump(exclude={"archive", "license_file"}))


def base_names() -> list[str]:
    return sorted(_read(resources.third_party() / "bases.toml", _Bases).bases)


def load_models(path: Path | None = None) -> tuple[str, dict[str, ModelPin]]:
    """The default model's name, and all models by name."""
    table = _read(path or resources.third_party() / "models.toml", _Models)
    pins = {
        name: ModelPin(
            name=name,
            wheel=Wheel(**entry.wheel.model_dump()) if entry.wheel else None,
            **entry.model_dump(exclude={"wheel"}),
        )
        for name, entry in table.models.items()
    }
    if table.default not in pins:
        raise ConfigError(f"The default model '{table.default}' is not in the table.", where="models.toml")
    return table.default, pins
