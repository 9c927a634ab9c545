"""Make the tree of a series without one patch: later patches are merged onto the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters.git import Repository
from tqforge.core.values import AppliedPatch
from tqforge.series.series import title_of

LEFT_OUT, REVERSED, BEFORE = "left out", "reversed", "the series before it, with its tests"


@dataclass(frozen=True)
class Variant:
    """A tree without one patch. `blockers` are later patches that cannot be applied without it."""

    tree: str
    how: str
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeaveOneOut:
    """An applied series; `tests` are the numbers of its patches that change nothing but tests."""

    repository: Repository
    applied: Sequence[AppliedPatch]
    tests: frozenset[int]
    scratch: Path

    @property
    def trees(self) -> list[str]:
        """The base, then the tree after each patch."""
        first = self.repository.tree(f"{self.applied[0].commit}^")
        return [first, *(patch.tree for patch in self.applied)]

    def without(self, number: int) -> Variant:
        """Leave a patch out and apply the later ones; if one needs it, reverse it on the whole series instead.

        If that fails as well, fall back to the series before it.
        """
        trees = self.trees
        tree, blockers = self._with(trees[number], range(number + 1, len(self.applied)))
        if not blockers:
            return Variant(tree, LEFT_OUT)
        reverse = self.repository.merge(trees[number + 1], trees[-1], trees[number], self.scratch / "drop")
        if reverse.clean and reverse.tree != trees[-1]:
            return Variant(reverse.tree, REVERSED)
        return self.before(number, blockers)

    def before(self, number: int, blockers: tuple[str, ...] = ()) -> Variant:
        """Return the series before a patch, plus the later patches that are only tests."""
        later = [other for other in sorted(self.tests) if other > number]
        return Variant(self._with(self.trees[number], later)[0], BEFORE, blockers)

    def _with(self, tree: str, numbers: Sequence[int]) -> tuple[str, tuple[str, ...]]:
        """Merge further patches onto a tree; return the tree, and the patches that cannot be merged."""
        trees, blockers = self.trees, []
        for number in numbers:
            merge = self.repository.merge(trees[number], tree, trees[number + 1], self.scratch / "drop")
            if merge.clean:
                tree = merge.tree
            else:
                blockers.append(title_of(self.applied[number].name))
        return tree, tuple(blockers)
