"""Try a series on another state of llama.cpp: each patch in two ways, by its text and by history, none left out.

By its text is what `apply` does (zero fuzz). By history is a three-way merge of base, patch and the other state. Where
both succeed with different results, the text landed in another place than history says: that would be silent damage.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqforge.adapters.git import Merge, Repository
from tqforge.core.values import AppliedPatch
from tqforge.series.drift import sections
from tqforge.series.drift.outcomes import DriftOutcome, DriftResult
from tqforge.series.drift.sections import Removal
from tqforge.series.failures import ApplyFailure, FailureKind, broken_reason, classify
from tqforge.series.patchfile import FileDiff, PatchFile, net_lines, parse, parse_diff
from tqforge.series.series import Patch, Series

_OFFSET = re.compile(r"^Hunk #\d+ succeeded at \d+ \(offset (-?\d+) lines?\)\.$", re.M)
_SHOWN = 3


@dataclass(frozen=True)
class _Try:
    """A result and the tree to go on with."""

    result: DriftResult
    tree: str


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What both ways gave for one patch on one tree. `by_text` is empty when the text does not fit."""

    patch: Patch
    parsed: PatchFile
    before: str  # the tree that the patch was made on
    tree: str
    by_text: str
    said: str
    merge: Merge


class Prober:
    """Tries the patches of one series. `applied` are those that are no broken files, on their own base."""

    def __init__(self, repository: Repository, series: Series, applied: Sequence[AppliedPatch], scratch: Path) -> None:
        self.repository, self.series, self.scratch = repository, series, scratch
        trees = {item.name: item.tree for item in applied}
        tree = repository.tree(f"{applied[0].commit}^") if applied else ""
        self.before: list[str] = []
        self.after: list[str] = []
        for patch in series.patches:
            self.before.append(tree)
            tree = trees.get(patch.name, tree)  # a broken file changes nothing
            self.after.append(tree)
        self._needs: dict[tuple[int, int], bool] = {}
        self._made: dict[str, list[Removal]] = {}

    def run(self, tree: str, progress: Callable[[str], None]) -> list[DriftResult]:
        """Every patch on the tree of a snapshot, in order; a failed one is left out for the next."""
        results: list[DriftResult] = []
        failed: list[int] = []
        for number, patch in enumerate(self.series.patches):
            progress(patch.title)
            attempt = self._try(number, tree)
            result, tree = attempt.result, attempt.tree
            if result.breaking and result.outcome is not DriftOutcome.BROKEN:
                needs = tuple(self.series.patches[other].title for other in failed if self._depends(number, other))
                result = replace(result, needs=needs)
            if result.breaking:
                failed.append(number)
            results.append(result)
        return results

    def _try(self, number: int, tree: str) -> _Try:
        patch = self.series.patches[number]
        if reason := broken_reason(patch.data):
            return _Try(DriftResult(patch=patch.title, outcome=DriftOutcome.BROKEN, detail=reason), tree)
        said, by_text = self._by_text(patch, tree)
        seen = _Seen(
            patch=patch,
            parsed=parse(patch.text),
            before=self.before[number],
            tree=tree,
            by_text=by_text,
            said=said,
            merge=self._merge(number, tree),
        )
        return self._text_fits(seen) if by_text else self._text_does_not_fit(seen)

    def _by_text(self, patch: Patch, tree: str) -> tuple[str, str]:
        """git's words and the tree after the patch, an empty string when it does not fit with zero fuzz."""
        env = {"GIT_INDEX_FILE": str(self.scratch / "text")}
        self.repository.git("read-tree", tree, env=env)
        done = self.repository.git("apply", "--cached", "--verbose", "--", patch.path, env=env, check=False)
        said = done.stdout + done.stderr
        return said, self.repository.git("write-tree", env=env).stdout.strip() if done.ok else ""

    def _reverses(self, patch: Patch) -> bool:
        env = {"GIT_INDEX_FILE": str(self.scratch / "text")}
        return self.repository.git(
            "apply", "--cached", "--check", "--reverse", "--", patch.path, env=env, check=False
        ).ok

    def _merge(self, number: int, tree: str) -> Merge:
        index = self.scratch / "merge"
        return self.repository.merge(self.before[number], tree, self.after[number], index)

    def _text_fits(self, seen: _Seen) -> _Try:
        offsets = sorted({int(found) for found in _OFFSET.findall(seen.said)}, key=abs)
        outcome = DriftOutcome.MOVED if offsets else DriftOutcome.CLEAN
        detail = f"by {', '.join(f'{offset:+d}' for offset in offsets)} lines" if offsets else ""
        title, merge = seen.patch.title, seen.merge
        if not merge.clean:
            detail += f"{'; ' if detail else ''}a three-way merge would conflict in {_few(merge.files)}"
        elif merge.tree == seen.tree:
            detail = "upstream has it, although its text would apply once more"
            return _Try(DriftResult(patch=title, outcome=DriftOutcome.ALREADY_UPSTREAM, detail=detail), seen.tree)
        elif merge.tree != seen.by_text:
            removed, added = self._between(merge.tree, seen.by_text)
            detail = f"its text fits in another place than history says; it would {_words(removed, added)}"
            file = self._first_difference(merge.tree, seen.by_text)
            return _Try(DriftResult(patch=title, outcome=DriftOutcome.LOST_LINES, file=file, detail=detail), merge.tree)
        return self._misplaced(seen, seen.by_text) or _Try(
            DriftResult(patch=title, outcome=outcome, detail=detail), seen.by_text
        )

    def _text_does_not_fit(self, seen: _Seen) -> _Try:
        patch, merge = seen.patch, seen.merge
        if merge.clean and merge.tree != seen.tree:
            return self._merged(seen)
        failure = classify(patch.name, patch.data, seen.said, reverses=merge.clean or self._reverses(patch))
        deleted = [paths[0] for kind, paths in merge.notes if "modify/delete" in kind and paths]
        if deleted and failure.kind is FailureKind.CONFLICT:
            failure = ApplyFailure(
                failure.patch, FailureKind.TARGET_DELETED, file=deleted[0], detail="not in that tree"
            )
        elif failure.kind is FailureKind.TARGET_DELETED:
            failure = replace(failure, detail="not in that tree")
        elif failure.kind is FailureKind.CONFLICT and merge.files:
            failure = replace(failure, detail=f"{failure.detail}; by history: {_few(merge.files)}".removeprefix("; "))
        return _Try(_of_failure(patch, failure), seen.tree)

    def _merged(self, seen: _Seen) -> _Try:
        title, merge = seen.patch.title, seen.merge
        lost, restored, missing = self._compare(seen.parsed, seen.tree, merge.tree)
        if lost or restored:
            file = self._first_difference(seen.tree, merge.tree)
            detail = f"the merge would {_words(lost, restored)}"
            return _Try(DriftResult(patch=title, outcome=DriftOutcome.LOST_LINES, file=file, detail=detail), seen.tree)
        if wrong := self._misplaced(seen, merge.tree):
            return wrong
        details = [f"{missing} of its lines are upstream already"] if missing else []
        changed = self.repository.line("diff-tree", "-r", "--name-only", seen.tree, merge.tree).splitlines()
        if elsewhere := sorted(set(changed) - set(seen.parsed.paths())):
            details.append(f"follows a rename to {_few(tuple(elsewhere))}")
        return _Try(DriftResult(patch=title, outcome=DriftOutcome.MERGED, detail="; ".join(details)), merge.tree)

    def _misplaced(self, seen: _Seen, new: str) -> _Try | None:
        """A result whose lines went from another function than the patch was made for."""
        title = seen.patch.title
        if title not in self._made:
            self._made[title] = list(sections.removals(seen.parsed.files, self._reader(seen.before)))
        if not (made := self._made[title]):
            return None
        read = self._reader(seen.tree)
        wrong = sections.misplaced(made, list(sections.removals(self._diff(seen.tree, new), read)), read)
        if not wrong:
            return None
        (item, section), more = wrong[0], f" and {len(wrong) - 1} more" if wrong[1:] else ""
        detail = f"it would drop {item.line.strip()!r} of '{item.section}'{more}, but was made for '{section}'"
        return _Try(DriftResult(patch=title, outcome=DriftOutcome.LOST_LINES, file=item.path, detail=detail), seen.tree)

    def _reader(self, tree: str) -> sections.Read:
        files = self.repository.files(tree)
        return lambda path: files.read(path) or ""

    def _diff(self, old: str, new: str) -> tuple[FileDiff, ...]:
        text = self.repository.git("diff-tree", "-p", "-r", "--full-index", "--no-renames", old, new).stdout
        return parse_diff(text)

    def _first_difference(self, old: str, new: str) -> str:
        return next(iter(self.repository.line("diff-tree", "-r", "--name-only", old, new).splitlines()), "")

    def _between(self, old: str, new: str) -> tuple[Counter[str], Counter[str]]:
        """Lines that go and lines that come from one tree to another, moves cancelled out."""
        return net_lines(line for diff in self._diff(old, new) for hunk in diff.hunks for line in hunk.lines)

    def _compare(self, parsed: PatchFile, old: str, new: str) -> tuple[Counter[str], Counter[str], int]:
        """What a merge removes and adds beyond the recorded patch, and how much of the patch it leaves out."""
        removed, added = self._between(old, new)
        recorded = [line for diff in parsed.files for hunk in diff.hunks for line in hunk.lines]
        wanted_removed, wanted_added = net_lines(recorded)
        return removed - wanted_removed, added - wanted_added, sum((wanted_added - added).values())

    def _depends(self, number: int, other: int) -> bool:
        """Whether a patch fails on its own base as well when one earlier patch is left out."""
        if (number, other) not in self._needs:
            tree = self.before[other]
            for place in range(other + 1, number):
                merge = self._merge(place, tree)
                tree = merge.tree if merge.clean else tree
            _, by_text = self._by_text(self.series.patches[number], tree)
            self._needs[number, other] = not by_text and not self._merge(number, tree).clean
        return self._needs[number, other]


def _few(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more


def _words(lost: Counter[str], restored: Counter[str]) -> str:
    parts = []
    for verb, lines in (("drop", lost), ("bring back or repeat", restored)):
        if lines:
            shown = "; ".join(repr(line.strip()) for line in sorted(lines)[:_SHOWN])
            parts.append(f"{verb} {sum(lines.values())} upstream lines: {shown}")
    return " and ".join(parts) or "change other lines"


def _of_failure(patch: Patch, failure: ApplyFailure) -> DriftResult:
    return DriftResult(
        patch=patch.title,
        outcome=DriftOutcome(str(failure.kind)),
        file=failure.file,
        hunk=failure.hunk,
        hunks=failure.hunks,
        detail=failure.detail,
    )
