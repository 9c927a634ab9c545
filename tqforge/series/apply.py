"""Apply the series as commits: one `git am` with zero fuzz in a temporary worktree, then move the checkout there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tqforge.adapters import fs, proc
from tqforge.adapters.git import Repository, remove_stale_lock
from tqforge.core.values import AppliedPatch
from tqforge.errors import CheckoutError
from tqforge.series.failures import ApplyError, ApplyFailure, classify
from tqforge.series.series import Patch, Series

BRANCH = "series"
HEAD_REF = "refs/tqforge/head"
AM = ("am", "--quiet", "--keep-cr", "--committer-date-is-author-date", "--no-gpg-sign", "--whitespace=nowarn")
_STAMP, _MOVING = "stamp.json", "moving"
_SHOWN = 8


@dataclass(frozen=True)
class Stamp:
    """The state of the checkout after the last apply; compared with the input to skip work."""

    source: str  # the --source option
    base_commit: str
    series_sha256: str
    head: str
    tree: str
    patches: tuple[AppliedPatch, ...]


def _private(repository: Repository) -> Path:
    return repository.path / ".git" / "tqforge"


def read_stamp(repository: Repository) -> Stamp | None:
    """Return the stamp of a checkout; None when it is missing or unreadable."""
    try:
        raw = json.loads((_private(repository) / _STAMP).read_text(encoding="utf-8"))
        patches = tuple(AppliedPatch(**item) for item in raw.pop("patches"))
        return Stamp(patches=patches, **raw)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_stamp(repository: Repository, stamp: Stamp) -> None:
    fs.write_text(_private(repository) / _STAMP, json.dumps(asdict(stamp), indent=1) + "\n")


@contextmanager
def temporary_worktree(repository: Repository, name: str, commit: str) -> Iterator[Repository]:
    """Check out a commit in a worktree that is removed afterwards. Files are written only as git needs them."""
    path = _private(repository) / f".{name}.part"
    remove_worktree(repository, path)
    work = add_worktree(repository, path, commit)
    try:
        yield work
    finally:
        remove_worktree(repository, path)


def add_worktree(repository: Repository, path: Path, commit: str) -> Repository:
    """Add a linked worktree with a full index but no files; git writes them when a patch touches them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with fs.disk_errors(path):
        repository.git("worktree", "add", "--quiet", "--detach", "--no-checkout", path, commit)
        work = Repository(path)
        work.git("read-tree", "HEAD")
    return work


def remove_worktree(repository: Repository, path: Path) -> None:
    """Remove a linked worktree and git's record of it, even after an interrupted run."""
    if path.exists():
        shutil.rmtree(path)
    repository.git("worktree", "prune", "--expire=now")


def commit_series(repository: Repository, work: Repository, series: Series) -> tuple[AppliedPatch, ...]:
    """Apply a series in a worktree at its base, one commit per patch. Raises ApplyError."""
    if not series.patches:
        return ()
    start = work.resolve("HEAD")
    done = work.git(*AM, "--no-3way", "--", *(patch.path for patch in series.patches), check=False)
    commits = work.commits(start, "HEAD")
    if not done.ok or len(commits) != len(series.patches):
        patch = series.patches[min(len(commits), len(series.patches) - 1)]
        head = commits[-1] if commits else start
        raise ApplyError(explain(work, patch, done), patch, base_commit=start, head=head)
    return tuple(_applied(repository, patch, commit) for patch, commit in zip(series.patches, commits, strict=True))


def _applied(repository: Repository, patch: Patch, commit: str) -> AppliedPatch:
    return AppliedPatch(
        name=patch.name,
        sha256=patch.sha256,
        patch_id=repository.patch_id(patch.text),
        commit=commit,
        tree=repository.tree(commit),
    )


def explain(work: Repository, patch: Patch, done: proc.Completed) -> ApplyFailure:
    """Classify a failure from git's messages and from whether the patch applies in reverse."""
    reverse = work.git("apply", "--check", "--cached", "--reverse", "--", patch.path, check=False)
    return classify(patch.name, patch.data, done.stdout + done.stderr, reverses=reverse.ok)


def require_untouched(repository: Repository, known: Sequence[str]) -> None:
    """Refuse a checkout with work of the user: changed files, or commits that tqforge did not make.

    `known` are the commits that tqforge itself may have left there. An interrupted move is repaired, not refused.
    """
    if interrupted(repository) or not (head := repository.resolve("HEAD")):
        return
    if changes := repository.changes():
        more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        raise CheckoutError(
            f"The checkout has changes: {', '.join(line[3:] for line in changes[:_SHOWN])}{more}.",
            where=str(repository.path),
            remedy="Create a patch from them with `tqforge patch new`, or discard them with "
            "`tqforge patch apply --discard`.",
        )
    if head not in known and repository.tree(head) not in {repository.tree(commit) for commit in known if commit}:
        raise CheckoutError(
            f"The checkout is at {head[:12]}, a commit that tqforge did not make.",
            where=str(repository.path),
            remedy="Turn your commits into patches with `tqforge patch export`, or discard them with "
            "`tqforge patch apply --discard`.",
        )


def move(repository: Repository, commit: str) -> None:
    """Move the checkout to a commit. After an interruption the next run finds the mark and repeats the move."""
    mark = _private(repository) / _MOVING
    fs.write_text(mark, commit + "\n")
    with fs.disk_errors(repository.path):
        remove_stale_lock(repository)
        repository.git("checkout", "--quiet", "--force", "-B", BRANCH, commit)
        repository.git("reset", "--quiet", "--hard", commit)
        repository.git("clean", "--quiet", "-d", "--force")
    repository.git("update-ref", HEAD_REF, commit)
    mark.unlink()


def interrupted(repository: Repository) -> bool:
    """Return whether a move was interrupted."""
    return (_private(repository) / _MOVING).exists()
