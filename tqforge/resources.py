"""The data files of tqforge: patches, pins, licences, the Metal emulator."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tqforge.errors import ConfigError


@cache
def data_root() -> Path:
    """Return the folder of `patches`, `third_party` and `metal`: in the installed package, or in the checkout."""
    package = Path(__file__).resolve().parent
    for root in (package / "_data", package.parent):
        if (root / "third_party" / "bases.toml").is_file():
            return root
    raise ConfigError(
        "tqforge was installed without its patches and pins.", where=str(package), remedy="Install tqforge again."
    )


def patches_dir(base: str) -> Path:
    """Return the folder of the series of a base."""
    return data_root() / "patches" / base


def third_party() -> Path:
    return data_root() / "third_party"


def metal_dir() -> Path:
    return data_root() / "metal"
