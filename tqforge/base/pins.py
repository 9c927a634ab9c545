"""Read and check `third_party/bases.toml` and `models.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tqforge import resources
from tqforge.core import toml_file
from tqforge.core.toml_file import Entry
from tqforge.core.values import Archive, Base, ModelPin, Parts, Wheel
from tqforge.errors import ConfigError, UsageError

Hex40 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Archive(Entry):
    project: str
    version: str
    filename: str
    sha256: Hex64
    size: int | None = None
    source: str
    bindings: str
    license: str
    license_file: str


class _Base(Entry):
    title: str
    repository: str
    commit: Hex40
    tree: Hex40
    license: str
    license_file: str
    build: int = 0
    archive: _Archive


class _Bases(Entry):
    schema_: Literal[1]
    default: str
    bases: dict[str, _Base]


class _Wheel(Entry):
    project: str
    version: str
    sha256: Hex64
    size: int | None = None


class _Parts(Entry):
    project: str
    version: str
    count: int = Field(ge=1)
    member: str
    first_member: int = 1


class _Model(Entry):
    title: str
    license: str
    file: str
    sha256: Hex64 | None = None
    wheel: _Wheel | None = None
    parts: _Parts | None = None
    url: str | None = None


class _Models(Entry):
    schema_: Literal[1]
    default: str
    models: dict[str, _Model]


def _bases(path: Path | None = None) -> _Bases:
    return toml_file.read(path or resources.third_party() / "bases.toml", _Bases, "The manifest")


def load_base(name: str | None = None, path: Path | None = None) -> Base:
    """Return a base by name, or the default one. Raises UsageError for an unknown name."""
    table = _bases(path)
    chosen = name or table.default
    entry = table.bases.get(chosen)
    if entry is None:
        raise UsageError(f"There is no base '{chosen}'.", remedy=f"Choose one of: {', '.join(sorted(table.bases))}.")
    archive = Archive(**entry.archive.model_dump(exclude={"license", "license_file"}))
    return Base(name=chosen, archive=archive, **entry.model_dump(exclude={"archive", "license_file"}))


def base_names() -> list[str]:
    return sorted(_bases().bases)


def load_models(path: Path | None = None) -> tuple[str, dict[str, ModelPin]]:
    """Return the name of the default model, and all models by name."""
    table = toml_file.read(path or resources.third_party() / "models.toml", _Models, "The manifest")
    pins = {
        name: ModelPin(
            name=name,
            wheel=Wheel(**entry.wheel.model_dump()) if entry.wheel else None,
            parts=Parts(**entry.parts.model_dump()) if entry.parts else None,
            **entry.model_dump(exclude={"wheel", "parts"}),
        )
        for name, entry in table.models.items()
    }
    if table.default not in pins:
        raise ConfigError(f"The default model '{table.default}' is not in the table.", where="models.toml")
    return table.default, pins
