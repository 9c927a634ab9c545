"""Try a series on another version of llama.cpp: each patch both as text and by three-way merge.

As text means what `apply` does: zero fuzz. The merge is one of the base, the patched base and the other version. Where
both succeed with different results, the text applied in the wrong place: that would be silent damage.
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
class _Step:
    """A result, and the tree for the next patch."""

    result: DriftResult
    tree: str


@dataclass(frozen=True, kw_only=True)
class _Attempts:
    """The results of both ways for one patch on one tree. `by_text` is empty when the text does not apply."""

    patch: Patch
    parsed: PatchFile
    before: str  # the tree that the patch was made on
    tree: str
    by_text: str
    output: str  # of git apply
    merge: Merge


class Prober:
    """Tries the patches of one series. `applied` are its well-formed patches, applied to their own base."""

    def __init__(self, repository: Repository, series: Series, applied: Sequence[AppliedPatch], scratch: Path) -> None:
        self.repository, self.series, self.scratch = repository, series, scratch
        trees = {item.name: item.tree for item in applied}
        tree = repository.tree(f"{applied[0].commit}^") if applied else ""
        self.before: list[str] = []
        self.after: list[str] = []
        for patch in series.patches:
            self.before.append(tree)
            tree = trees.get(patch.name, tree)  # a malformed patch changes nothing
            self.after.append(tree)
        self._needs: dict[tuple[int, int], bool] = {}
        self._made: dict[str, list[Removal]] = {}

    def run(self, tree: str, progress: Callable[[str], None]) -> list[DriftResult]:
        """Try every patch on the tree of a snapshot, in order; later patches go on without a failed one."""
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

    def _try(self, number: int, tree: str) -> _Step:
        patch = self.series.patches[number]
        if reason := broken_reason(patch.data):
            return _Step(DriftResult(patch=patch.title, outcome=DriftOutcome.BROKEN, detail=reason), tree)
        output, by_text = self._by_text(patch, tree)
        tried = _Attempts(
            patch=patch,
            parsed=parse(patch.text),
            before=self.before[number],
            tree=tree,
            by_text=by_text,
            output=output,
            merge=self._merge(number, tree),
        )
        return self._text_fits(tried) if by_text else self._text_does_not_fit(tried)

    def _by_text(self, patch: Patch, tree: str) -> tuple[str, str]:
        """Return git's output and the tree after the patch; no tree when it does not apply with zero fuzz."""
        env = {"GIT_INDEX_FILE": str(self.scratch / "text")}
        self.repository.git("read-tree", tree, env=env)
        done = self.repository.git("apply", "--cached", "--verbose", "--", patch.path, env=env, check=False)
        output = done.stdout + done.stderr
        return output, self.repository.git("write-tree", env=env).stdout.strip() if done.ok else ""

    def _reverses(self, patch: Patch) -> bool:
        env = {"GIT_INDEX_FILE": str(self.scratch / "text")}
        return self.repository.git(
            "apply", "--cached", "--check", "--reverse", "--", patch.path, env=env, check=False
        ).ok

    def _merge(self, number: int, tree: str) -> Merge:
        index = self.scratch / "merge"
        return self.repository.merge(self.before[number], tree, self.after[number], index)

    def _text_fits(self, tried: _Attempts) -> _Step:
        offsets = sorted({int(found) for found in _OFFSET.findall(tried.output)}, key=abs)
        outcome = DriftOutcome.MOVED if offsets else DriftOutcome.CLEAN
        detail = f"by {', '.join(f'{offset:+d}' for offset in offsets)} lines" if offsets else ""
        title, merge = tried.patch.title, tried.merge
        if not merge.clean:
            detail += f"{'; ' if detail else ''}a three-way merge would conflict in {_few(merge.files)}"
        elif merge.tree == tried.tree:
            detail = "upstream contains it, although the text would apply again"
            return _Step(DriftResult(patch=title, outcome=DriftOutcome.ALREADY_UPSTREAM, detail=detail), tried.tree)
        elif merge.tree != tried.by_text:
            removed, added = self._between(merge.tree, tried.by_text)
            detail = f"the text applies in the wrong place; it would {_words(removed, added)}"
            file = self._first_difference(merge.tree, tried.by_text)
            return _Step(_lost(title, file, detail), merge.tree)
        return self._misplaced(tried, tried.by_text) or _Step(
            DriftResult(patch=title, outcome=outcome, detail=detail), tried.by_text
        )

    def _text_does_not_fit(self, tried: _Attempts) -> _Step:
        patch, merge = tried.patch, tried.merge
        if merge.clean and merge.tree != tried.tree:
            return self._merged(tried)
        failure = classify(patch.name, patch.data, tried.output, reverses=merge.clean or self._reverses(patch))
        deleted = [paths[0] for kind, paths in merge.notes if "modify/delete" in kind and paths]
        if deleted and failure.kind is FailureKind.CONFLICT:
            failure = ApplyFailure(
                failure.patch, FailureKind.TARGET_DELETED, file=deleted[0], detail="not in that tree"
            )
        elif failure.kind is FailureKind.TARGET_DELETED:
            failure = replace(failure, detail="not in that tree")
        elif failure.kind is FailureKind.CONFLICT and merge.files:
            failure = replace(
                failure,
                detail=f"{failure.detail}; a three-way merge conflicts in {_few(merge.files)}".removeprefix("; "),
            )
        return _Step(_of_failure(patch, failure), tried.tree)

    def _merged(self, tried: _Attempts) -> _Step:
        title, merge = tried.patch.title, tried.merge
        lost, restored, missing = self._compare(tried.parsed, tried.tree, merge.tree)
        if lost or restored:
            file = self._first_difference(tried.tree, merge.tree)
            detail = f"the merge would {_words(lost, restored)}"
            return _Step(_lost(title, file, detail), tried.tree)
        if wrong := self._misplaced(tried, merge.tree):
            return wrong
        details = [f"upstream already contains {missing} of its lines"] if missing else []
        changed = self.repository.line("diff-tree", "-r", "--name-only", tried.tree, merge.tree).splitlines()
        if elsewhere := sorted(set(changed) - set(tried.parsed.paths())):
            details.append(f"follows a rename to {_few(tuple(elsewhere))}")
        return _Step(DriftResult(patch=title, outcome=DriftOutcome.MERGED, detail="; ".join(details)), merge.tree)

    def _misplaced(self, tried: _Attempts, new: str) -> _Step | None:
        """Return a result if lines were removed from another function than the patch was made for."""
        title = tried.patch.title
        if title not in self._made:
            self._made[title] = list(sections.removals(tried.parsed.files, self._reader(tried.before)))
        if not (made := self._made[title]):
            return None
        read = self._reader(tried.tree)
        wrong = sections.misplaced(made, list(sections.removals(self._diff(tried.tree, new), read)), read)
        if not wrong:
            return None
        (item, section), more = wrong[0], f" and {len(wrong) - 1} more" if wrong[1:] else ""
        detail = f"it would remove {item.line.strip()!r} from '{item.section}'{more}, but was made for '{section}'"
        return _Step(_lost(title, item.path, detail), tried.tree)

    def _reader(self, tree: str) -> sections.Read:
        files = self.repository.files(tree)
        return lambda path: files.read(path) or ""

    def _diff(self, old: str, new: str) -> tuple[FileDiff, ...]:
        text = self.repository.git("diff-tree", "-p", "-r", "--full-index", "--no-renames", old, new).stdout
        return parse_diff(text)

    def _first_difference(self, old: str, new: str) -> str:
        return next(iter(self.repository.line("diff-tree", "-r", "--name-only", old, new).splitlines()), "")

    def _between(self, old: str, new: str) -> tuple[Counter[str], Counter[str]]:
        """Return the removed and the added lines between two trees; moved lines cancel out."""
        return net_lines(line for diff in self._diff(old, new) for hunk in diff.hunks for line in hunk.lines)

    def _compare(self, parsed: PatchFile, old: str, new: str) -> tuple[Counter[str], Counter[str], int]:
        """Return what a merge removes and adds beyond the patch, and how many of the patch's lines it leaves out."""
        removed, added = self._between(old, new)
        recorded = [line for diff in parsed.files for hunk in diff.hunks for line in hunk.lines]
        wanted_removed, wanted_added = net_lines(recorded)
        return removed - wanted_removed, added - wanted_added, sum((wanted_added - added).values())

    def _depends(self, number: int, other: int) -> bool:
        """Return whether a patch also fails on its own base when one earlier patch is left out."""
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
    for verb, lines in (("remove", lost), ("restore or duplicate", restored)):
        if lines:
            shown = "; ".join(repr(line.strip()) for line in sorted(lines)[:_SHOWN])
            parts.append(f"{verb} {sum(lines.values())} upstream lines: {shown}")
    return " and ".join(parts) or "change other lines"


def _lost(title: str, file: str, detail: str) -> DriftResult:
    return DriftResult(patch=title, outcome=DriftOutcome.LOST_LINES, file=file, detail=detail)


def _of_failure(patch: Patch, failure: ApplyFailure) -> DriftResult:
    return DriftResult(
        patch=patch.title,
        outcome=DriftOutcome(str(failure.kind)),
        file=failure.file,
        hunk=failure.hunk,
        hunks=failure.hunks,
        detail=failure.detail,
    )
