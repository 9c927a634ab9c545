"""The series as commits: one `git am` with zero fuzz, prepared aside, moved into the checkout when all of it fits."""

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
from tqforge.errors import CheckoutError, PatchError
from tqforge.series.failures import Failure, classify
from tqforge.series.series import Patch, Series

BRANCH = "series"
HEAD_REF = "refs/tqforge/head"
AM = ("am", "--quiet", "--keep-cr", "--committer-date-is-author-date", "--no-gpg-sign", "--whitespace=nowarn")
_STAMP, _MOVING = "stamp.json", "moving"
_SHOWN = 8


@dataclass(frozen=True)
class Stamp:
    """What the checkout was brought to; the fast path compares it with the input."""

    source: str  # as it was asked for
    base_commit: str
    series_sha256: str
    head: str
    tree: str
    patches: tuple[AppliedPatch, ...]


def _private(repository: Repository) -> Path:
    return repository.path / ".git" / "tqforge"


def read_stamp(repository: Repository) -> Stamp | None:
    """The stamp of a checkout; None when there is none or it cannot be read."""
    try:
        raw = json.loads((_private(repository) / _STAMP).read_text(encoding="utf-8"))
        patches = tuple(AppliedPatch(**item) for item in raw.pop("patches"))
        return Stamp(patches=patches, **raw)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_stamp(repository: Repository, stamp: Stamp) -> None:
    fs.write_text(_private(repository) / _STAMP, json.dumps(asdict(stamp), indent=1) + "\n")


@contextmanager
def aside(repository: Repository, name: str, commit: str) -> Iterator[Repository]:
    """A throwaway work tree at a commit. Its index is full but its files are written only as git needs them."""
    path = _private(repository) / f".{name}.part"
    remove_aside(repository, path)
    work = add_aside(repository, path, commit)
    try:
        yield work
    finally:
        remove_aside(repository, path)


def add_aside(repository: Repository, path: Path, commit: str) -> Repository:
    """A linked work tree without files; git takes them from the index when a patch touches them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with fs.disk_errors(path):
        repository.git("worktree", "add", "--quiet", "--detach", "--no-checkout", path, commit)
        work = Repository(path)
        work.git("read-tree", "HEAD")
    return work


def remove_aside(repository: Repository, path: Path) -> None:
    """Remove a linked work tree and what git remembers of it, whatever state a killed run left it in."""
    if path.exists():
        shutil.rmtree(path)
    repository.git("worktree", "prune", "--expire=now")


def commit_series(repository: Repository, work: Repository, series: Series) -> tuple[AppliedPatch, ...]:
    """Apply a series in a work tree that stands at its base, each patch one commit. Raises PatchError."""
    if not series.patches:
        return ()
    start = work.resolve("HEAD")
    done = work.git(*AM, "--no-3way", "--", *(patch.path for patch in series.patches), check=False)
    commits = work.commits(start, "HEAD")
    if not done.ok or len(commits) != len(series.patches):
        patch = series.patches[min(len(commits), len(series.patches) - 1)]
        raise failed(explain(work, patch, done), series)
    return tuple(_applied(repository, patch, commit) for patch, commit in zip(series.patches, commits, strict=True))


def _applied(repository: Repository, patch: Patch, commit: str) -> AppliedPatch:
    return AppliedPatch(
        name=patch.name,
        sha256=patch.sha256,
        patch_id=repository.patch_id(patch.text),
        commit=commit,
        tree=repository.tree(commit),
    )


def explain(work: Repository, patch: Patch, done: proc.Completed) -> Failure:
    """The class of a failure, from git's words and a reverse probe against the index."""
    reverse = work.git("apply", "--check", "--cached", "--reverse", "--", patch.path, check=False)
    return classify(patch.name, patch.data, done.stdout + done.stderr, reverses=reverse.ok)


def failed(failure: Failure, series: Series) -> PatchError:
    return PatchError(
        f"{failure.sentence()}.",
        where=str(series.folder / failure.patch),
        remedy="Nothing was changed. Run `tqforge patch apply` to resolve it step by step.",
    )


def require_untouched(repository: Repository, known: Sequence[str]) -> None:
    """Refuse a checkout that holds work of the user: changed files, or commits that tqforge did not make.

    `known` are the commits tqforge may leave behind. What a killed move left is tqforge's own and is repaired.
    """
    if (_private(repository) / _MOVING).exists() or not repository.resolve("HEAD"):
        return
    if changes := repository.changes():
        more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        raise CheckoutError(
            f"The checkout has changes: {', '.join(line[3:] for line in changes[:_SHOWN])}{more}.",
            where=str(repository.path),
            remedy="Make a patch of them with `tqforge patch new`, "
            "or throw them away with `tqforge patch apply --discard`.",
        )
    head = repository.resolve("HEAD")
    if head not in known and repository.tree(head) not in {repository.tree(commit) for commit in known if commit}:
        raise CheckoutError(
            f"The checkout stands at {head[:12]}, which tqforge did not make.",
            where=str(repository.path),
            remedy="Turn your commits into patches with `tqforge patch refresh`, "
            "or leave them with `tqforge patch apply --discard`.",
        )


def move(repository: Repository, commit: str) -> None:
    """Bring the checkout to a commit. Killed halfway, the next run sees the mark and does it again."""
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
    """Whether a move was killed halfway."""
    return (_private(repository) / _MOVING).exists()
