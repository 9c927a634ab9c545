"""The ordered patches of a base: `patches/<base>/series` names the files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tqforge.errors import ConfigError

SERIES = "series"
SUFFIX = ".patch"


@dataclass(frozen=True)
class Patch:
    """One patch file as it lies on disk."""

    name: str
    path: Path
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def text(self) -> str:
        """The content; bytes that are not UTF-8 survive a round trip."""
        return self.data.decode("utf-8", "surrogateescape")

    @property
    def title(self) -> str:
        """The name without its suffix, as `Patch-Name:` gives it."""
        return self.name.removesuffix(SUFFIX)


@dataclass(frozen=True)
class Series:
    """The patches of one base in order."""

    folder: Path
    patches: tuple[Patch, ...]

    @property
    def sha256(self) -> str:
        """One hash over names, order and content."""
        lines = "".join(f"{patch.sha256}  {patch.name}\n" for patch in self.patches)
        return hashlib.sha256(lines.encode()).hexdigest()

    def find(self, title: str) -> Patch:
        """The patch of that name, with or without suffix. Raises ConfigError."""
        wanted = title.removesuffix(SUFFIX)
        for patch in self.patches:
            if patch.title == wanted:
                return patch
        known = ", ".join(patch.title for patch in self.patches) or "none"
        raise ConfigError(
            f"There is no patch '{wanted}' in the series.", where=str(self.folder), remedy=f"It has: {known}."
        )

    def without(self, title: str) -> Series:
        """The series with one patch left out."""
        left = self.find(title)
        return Series(self.folder, tuple(patch for patch in self.patches if patch is not left))

    def prefix(self, count: int) -> Series:
        """The first `count` patches."""
        return Series(self.folder, self.patches[:count])


def parse_names(text: str, where: str) -> list[str]:
    """The file names of a `series` file: one per line, `#` begins a comment. Raises ConfigError."""
    names: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        if not line.endswith(SUFFIX) or "/" in line or "\\" in line or line.startswith(".") or " " in line:
            raise ConfigError(
                f"line {number}: '{line}' is not the name of a patch file.",
                where=where,
                remedy=f"Write <name>{SUFFIX}.",
            )
        if line in names:
            raise ConfigError(
                f"line {number}: '{line}' is listed twice.", where=where, remedy="Remove one of the two lines."
            )
        names.append(line)
    return names


def names(folder: Path) -> list[str]:
    """The names that the `series` file of a folder lists; none when there is no such file."""
    listing = folder / SERIES
    if not listing.is_file():
        return []
    try:
        return parse_names(listing.read_text(encoding="utf-8"), str(listing))
    except UnicodeDecodeError as error:
        raise ConfigError("The series file is not UTF-8.", where=str(listing)) from error


def load(folder: Path) -> Series:
    """Read a series and all its patches. Raises ConfigError."""
    patches = []
    for name in names(folder):
        path = folder / name
        try:
            patches.append(Patch(name, path, path.read_bytes()))
        except OSError as error:
            raise ConfigError(
                f"'{name}' is listed in the series but cannot be read.",
                where=str(path),
                remedy="Restore the file, or remove its line from the series.",
            ) from error
    return Series(folder, tuple(patches))
