"""The only door to git.

Hermetic calls depend on their input alone, whatever the user's configuration, locale, time zone or environment.
`fetch` keeps the user's configuration, because proxies and credentials live there. What only reads commits, trees and
files goes through GitPython (`reader`).
"""

from tqforge.adapters.git.environment import FIXED_DATE
from tqforge.adapters.git.reader import TreeFiles
from tqforge.adapters.git.repository import (
    INSTALL,
    OLDEST,
    OLDEST_TO_MERGE,
    Merge,
    Repository,
    remove_stale_lock,
)

__all__ = [
    "FIXED_DATE",
    "INSTALL",
    "OLDEST",
    "OLDEST_TO_MERGE",
    "Merge",
    "Repository",
    "TreeFiles",
    "remove_stale_lock",
]
