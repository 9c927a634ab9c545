"""The series without one patch, as a tree: later patches are merged onto what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters.git import Repository
from tqforge.core.values import AppliedPatch

LEFT_OUT, REVERSED, BEFORE = "left out", "reversed", "the series before it, with its tests"


@dataclass(frozen=True)
class Variant:
    """A tree without one patch. `blockers` are later patches that cannot be had without it."""

    tree: str
    how: str
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """A series that is applied, and which of its patches bring nothing but tests."""

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

        If that does not go either, what remains is the series before it.
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
        """The series up to a patch, and the tests that come later."""
        later = [other for other in sorted(self.tests) if other > number]
        return Variant(self._with(self.trees[number], later)[0], BEFORE, blockers)

    def _with(self, tree: str, numbers: Sequence[int]) -> tuple[str, tuple[str, ...]]:
        """A tree with further patches, and those that cannot be merged onto it."""
        trees, blockers = self.trees, []
        for number in numbers:
            merge = self.repository.merge(trees[number], tree, trees[number + 1], self.scratch / "drop")
            if merge.clean:
                tree = merge.tree
            else:
                blockers.append(self.applied[number].name.removesuffix(".patch"))
        return tree, tuple(blockers)
