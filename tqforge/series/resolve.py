"""Resolve a patch that does not apply in a worktree of its own; the checkout stays as it is until the end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tqforge.adapters import fs
from tqforge.adapters.git import Repository
from tqforge.errors import PatchError, UsageError
from tqforge.series.apply import AM, add_worktree, explain, remove_worktree
from tqforge.series.failures import ApplyError
from tqforge.series.patchfile import net_lines, parse
from tqforge.series.series import Patch, Series

_STATE = "conflict.json"


@dataclass(frozen=True)
class Conflict:
    """The patch that stopped the series."""

    base_commit: str
    patch: str  # its file name
    head: str  # the commit that it was tried on
    skipped: tuple[str, ...] = ()


def folder(repository: Repository) -> Path:
    """Return the worktree for resolving: beside the checkout, so that it is easy to find."""
    return repository.path.with_name(f"{repository.path.name}-resolve")


def _state(repository: Repository) -> Path:
    return repository.path / ".git" / "tqforge" / _STATE


def _save(repository: Repository, conflict: Conflict) -> None:
    fs.write_text(_state(repository), json.dumps(asdict(conflict)) + "\n")


def current(repository: Repository) -> Conflict:
    """Return the conflict in progress. Raises UsageError when there is none."""
    try:
        raw = json.loads(_state(repository).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError("There is no conflict to resolve.", remedy="Run `tqforge patch apply`.") from None
    return Conflict(raw["base_commit"], raw["patch"], raw["head"], tuple(raw["skipped"]))


def start(repository: Repository, error: ApplyError) -> PatchError:
    """Check out the commit that the patch was tried on and merge the patch there; return the error to show."""
    abort(repository)
    work = add_worktree(repository, folder(repository), error.head)
    work.git("checkout-index", "--all", "--force")
    work.git("update-index", "--refresh", "-q", check=False)
    return _stop(repository, work, error, ())


def _stop(repository: Repository, work: Repository, error: ApplyError, skipped: tuple[str, ...]) -> PatchError:
    _merge(work, error.patch)
    _save(repository, Conflict(error.base_commit, error.patch.name, error.head, skipped))
    return _instructions(repository, error)


def _merge(work: Repository, patch: Patch) -> None:
    """Leave the best starting point: conflict markers of a 3-way merge, else all hunks that fit and `.rej` files."""
    work.git("am", "--abort", check=False)
    before = work.resolve("HEAD")
    work.git(*AM, "--3way", "--", patch.path, check=False)
    if work.resolve("HEAD") == before and not work.changes():
        work.git("apply", "--reject", "--index", "--", patch.path, check=False)
        work.git("apply", "--reject", "--", patch.path, check=False)


def continue_(repository: Repository, series: Series, *, skip: bool = False) -> None:
    """Commit the resolved patch (or drop it with `skip`), then apply the rest. Raises PatchError for the next one."""
    conflict = current(repository)
    work = Repository(folder(repository))
    skipped = conflict.skipped
    if skip:
        work.git("am", "--skip", check=False)
        skipped = (*skipped, conflict.patch)
        _save(repository, Conflict(conflict.base_commit, conflict.patch, conflict.head, skipped))
    else:
        _commit(work, series.find(conflict.patch), conflict.head)
    place = next(number for number, patch in enumerate(series.patches) if patch.name == conflict.patch)
    for patch in series.patches[place + 1 :]:
        before = work.resolve("HEAD")
        done = work.git(*AM, "--no-3way", "--", patch.path, check=False)
        if not done.ok or work.resolve("HEAD") == before:
            failure = explain(work, patch, done)
            error = ApplyError(failure, patch, base_commit=conflict.base_commit, head=before)
            raise _stop(repository, work, error, skipped)


def _is_committed(work: Repository, head: str) -> bool:
    """Return whether the patch is committed: by the 3-way merge, or by the user."""
    in_progress = Path(work.line("rev-parse", "--path-format=absolute", "--git-path", "rebase-apply")).exists()
    return not in_progress and work.resolve("HEAD") != head


def _commit(work: Repository, patch: Patch, head: str) -> None:
    unmerged = work.line("diff", "--name-only", "--diff-filter=U").splitlines()
    rejected = [str(path.relative_to(work.path)) for path in work.path.rglob("*.rej")]
    if left := unmerged + rejected:
        raise PatchError(
            f"{patch.name} is not resolved yet: {', '.join(left[:8])}.",
            where=str(work.path),
            remedy=f"Edit them, remove *.rej, run `git -C {work.path} add -A`, then `tqforge patch apply --continue`.",
        )
    if _is_committed(work, head):
        return
    done = work.git("am", "--continue", check=False)
    if not done.ok:
        raise PatchError(
            f"{patch.name} cannot be committed: {done.tail(3)}",
            where=str(work.path),
            remedy="Run `git add -A` there, or drop the patch with `tqforge patch apply --skip`.",
        )


def resolved_head(repository: Repository) -> str:
    """Return the head of the series in the worktree, which stays until `abort`."""
    return Repository(folder(repository)).resolve("HEAD")


def removed_beyond(old: str, new: str) -> list[str]:
    """Return the lines that the new form of a patch removes and the old one did not."""
    removed = [
        net_lines([line for diff in parse(text).files for hunk in diff.hunks for line in hunk.lines])[0]
        for text in (old, new)
    ]
    return sorted((removed[1] - removed[0]).elements())


def abort(repository: Repository) -> bool:
    """Remove the worktree and the conflict; returns whether there was one."""
    present = folder(repository).exists()
    remove_worktree(repository, folder(repository))
    _state(repository).unlink(missing_ok=True)
    return present


def _instructions(repository: Repository, error: ApplyError) -> PatchError:
    """Return the error of a conflict: what failed, where, and the commands to continue."""
    path = folder(repository)
    merged = _is_committed(Repository(path), error.head)
    first = "review the 3-way merge" if merged else "edit the files there, then run"
    command = f"git -C {path} " + ("show" if merged else "add -A")
    return PatchError(
        error.what,
        where=error.where,
        remedy=(
            f"The checkout was not changed; resolve the conflict in {path}.\n"
            f"        1. {first}: {command}\n"
            f"        2. tqforge patch apply --continue   (or --skip to drop this patch)\n"
            f"        3. or stop: tqforge patch apply --abort"
        ),
    )
