"""Split the series into parts for upstream: CPU first, then one part per other backend, without trailers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters.git import Repository
from tqforge.core.values import AppliedPatch
from tqforge.errors import PatchError
from tqforge.series import export
from tqforge.series.patchfile import PatchFile, parse
from tqforge.series.series import Series
from tqforge.series.trailers import ORDER

CPU = "cpu"
_BACKEND = re.compile(r"^ggml/src/ggml-(?!cpu/)([a-z0-9]+)/")
_TRAILER = re.compile(rf"^(?:{'|'.join(ORDER)}): ")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One patch in the form that goes upstream."""

    title: str
    file: str
    data: bytes
    tree: str  # after it
    alone: bool  # its text applies to the bare base


@dataclass(frozen=True, kw_only=True)
class Part:
    """The patches of one pull request."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def tree(self) -> str:
        return self.pieces[-1].tree


def part_of(patch: PatchFile) -> str:
    """Return the backend of a patch: `cpu`, unless it only changes files of another backend."""
    backends = {found[1] if (found := _BACKEND.match(path)) else CPU for path in patch.paths()}
    return backends.pop() if len(backends) == 1 else CPU


def message(patch: PatchFile) -> str:
    """Return subject and body without tqforge's trailers."""
    lines = [line for line in patch.body if not _TRAILER.match(line)]
    body = "\n".join(lines).strip()
    return f"{patch.subject}\n" + (f"\n{body}\n" if body else "")


def split(
    repository: Repository, base_commit: str, series: Series, applied: Sequence[AppliedPatch], scratch: Path
) -> tuple[Part, ...]:
    """Return the parts in order. Raises PatchError when together they do not give the tree of the series."""
    parsed = [parse(patch.text) for patch in series.patches]
    names = [part_of(patch) for patch in parsed]
    order = [CPU, *sorted(set(names) - {CPU})]
    trees = [repository.tree(base_commit), *(patch.tree for patch in applied)]
    tree, head = trees[0], base_commit
    parts = []
    for name in order:
        numbers = [number for number, other in enumerate(names) if other == name]
        after: list[str] = []
        first = head
        for number in numbers:
            merge = repository.merge(trees[number], tree, trees[number + 1], scratch / "split")
            if not merge.clean:
                raise _does_not_fit(series.patches[number].name, name, merge.files)
            tree = merge.tree
            head = repository.commit_tree(tree, message(parsed[number]), [head])
            after.append(tree)
        rows = zip(numbers, export.format_patches(repository, first, head), after, strict=True)
        pieces = [
            Piece(
                title=series.patches[number].title,
                file=f"{place:04d}-{series.patches[number].name}",
                data=data,
                tree=its_tree,
                alone=_applies(repository, series.patches[number].path, trees[0], scratch),
            )
            for place, (number, data, its_tree) in enumerate(rows, 1)
        ]
        if pieces:
            parts.append(Part(name=name, pieces=tuple(pieces)))
    if tree != trees[-1]:
        raise PatchError(f"The parts give tree {tree}, the series gives {trees[-1]}.", remedy="Reorder the series.")
    return tuple(parts)


def _does_not_fit(patch: str, part: str, files: Sequence[str]) -> PatchError:
    return PatchError(
        f"{patch} cannot go into the part '{part}': it depends on patches of a later part.",
        where=", ".join(files),
        remedy="Move the code it depends on into a patch of that part.",
    )


def _applies(repository: Repository, path: Path, tree: str, scratch: Path) -> bool:
    env = {"GIT_INDEX_FILE": str(scratch / "alone")}
    repository.git("read-tree", tree, env=env)
    return repository.git("apply", "--cached", "--check", "--", path, env=env, check=False).ok
