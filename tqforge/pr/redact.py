"""Remove the paths of this machine from records: a path becomes the name of its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_HOME = "~"
#: An absolute path of two parts or more; what follows a word, a colon or a slash is a pair, a ratio or an address.
_PATH = re.compile(
    r"""(?<![\w.:/~])~?/(?:[^/\s"'`,;:()<>|=]+/)+([^/\s"'`,;:()<>|=]*)|(?<![\w.])~/([^/\s"'`,;:()<>|=]+)"""
)


def without_paths(value: Any, known: Sequence[str]) -> Any:
    """Return a JSON value without paths. `known` folders are found even with spaces in their names."""
    if isinstance(value, str):
        for folder in sorted(known, key=len, reverse=True):
            value = re.sub(rf"{re.escape(folder.rstrip('/'))}(?![^/\\s'\"`,;:()<>])", _HOME, value)
        return _PATH.sub(lambda found: found[1] or found[2] or _HOME, value)
    if isinstance(value, dict):
        return {key: without_paths(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [without_paths(item, known) for item in value]
    return value
