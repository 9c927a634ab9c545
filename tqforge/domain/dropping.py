"""The series without one patch, as a tree: later patches are merged onto what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters.git import Repository
from tqforge.domain.model import AppliedPatch
from tqforge.domain.source import DATE


@dataclass(frozen=True)
class Variant:
    """A tree without one patch; with `blockers`, without those as well, because they need it."""

    tree: str
    how: str  # "left out" or "reversed"
    blockers: tuple[str, ...] = ()


def without(repository: Repository, applied: Sequence[AppliedPatch], number: int, scratch: Path) -> Variant:
    """Leave a patch out and apply the later ones; if one needs it, reverse it on the whole series instead.

    If that does not go either, it is left out together with the patches that need it.
    """
    trees = [repository.tree(f"{applied[0].commit}^"), *(patch.tree for patch in applied)]
    index = scratch / "drop"
    tree, blockers = trees[number], []
    for later in range(number + 1, len(applied)):
        merge = repository.merge(trees[later], tree, trees[later + 1], index, DATE)
        if merge.clean:
            tree = merge.tree
        else:
            blockers.append(applied[later].name.removesuffix(".patch"))
    if not blockers:
        return Variant(tree, "left out")
    reverse = repository.merge(trees[number + 1], trees[-1], trees[number], index, DATE)
    if reverse.clean and reverse.tree != trees[-1]:
        return Variant(reverse.tree, "reversed")
    return Variant(tree, "left out", tuple(blockers))
