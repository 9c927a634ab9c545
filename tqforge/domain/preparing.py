"""From a pinned base to a checkout that holds it with its whole series: fetch, import, apply, check.

`prepare` is what `build` and `verify` stand on.
"""

from __future__ import annotations

from tqforge.context import Context
from tqforge.domain.model import Base, Prepared


def prepare(ctx: Context, base: Base, *, source: str = "archive") -> Prepared:
    """The checkout of a base with its series applied, checked against `tqforge.lock`.

    `source` is `archive`, `git`, or the path of a folder, repository or archive that the user already has.
    The caller holds the workspace lock. When nothing changed this takes a fraction of a second and writes nothing.
    """
    raise NotImplementedError
