"""Read the ordered patches of a base; the file `patches/<base>/series` lists them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tqforge.errors import ConfigError

SERIES = "series"
SUFFIX = ".patch"


def title_of(name: str) -> str:
    """Return the name of a patch without the suffix of its file."""
    return name.removesuffix(SUFFIX)


@dataclass(frozen=True)
class Patch:
    """One patch file on disk."""

    name: str
    path: Path
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 survive a round trip."""
        return self.data.decode("utf-8", "surrogateescape")

    @property
    def title(self) -> str:
        """The name without its suffix, as in the `Patch-Name:` trailer."""
        return title_of(self.name)


@dataclass(frozen=True)
class Series:
    """The patches of one base in order."""

    folder: Path
    patches: tuple[Patch, ...]

    @property
    def sha256(self) -> str:
        """A hash of the names, the order and the content."""
        lines = "".join(f"{patch.sha256}  {patch.name}\n" for patch in self.patches)
        return hashlib.sha256(lines.encode()).hexdigest()

    def find(self, title: str) -> Patch:
        """Return the patch of that name, with or without suffix. Raises ConfigError."""
        wanted = title_of(title)
        for patch in self.patches:
            if patch.title == wanted:
                return patch
        known = ", ".join(patch.title for patch in self.patches) or "none"
        raise ConfigError(
            f"The series has no patch '{wanted}'.", where=str(self.folder), remedy=f"Its patches: {known}."
        )


def parse_names(text: str, where: str) -> list[str]:
    """Return the file names in a `series` file: one per line, `#` starts a comment. Raises ConfigError."""
    names: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        if not line.endswith(SUFFIX) or "/" in line or "\\" in line or line.startswith(".") or " " in line:
            raise ConfigError(
                f"line {number}: '{line}' is not a patch file name.",
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
    """Return the names listed in the `series` file of a folder; none without such a file."""
    listing = folder / SERIES
    if not listing.is_file():
        return []
    try:
        return parse_names(listing.read_text(encoding="utf-8"), str(listing))
    except UnicodeDecodeError as error:
        raise ConfigError("The series file is not UTF-8.", where=str(listing)) from error


def load(folder: Path) -> Series:
    """Read a series with all its patches. Raises ConfigError."""
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
