"""A patch that does not apply, parked in a work tree of its own until a person resolved it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tqforge.adapters import fs
from tqforge.adapters.git import Repository
from tqforge.errors import PatchError, UsageError
from tqforge.series.apply import AM, add_aside, explain, remove_aside
from tqforge.series.failures import Failure
from tqforge.series.patchfile import net_lines, parse
from tqforge.series.series import Patch, Series

_STATE = "parked.json"


@dataclass(frozen=True)
class Parked:
    """Where a series stopped."""

    base_commit: str
    current: str  # name of the patch that does not apply
    stood: str  # the commit it was tried on
    skipped: tuple[str, ...] = ()


def folder(repository: Repository) -> Path:
    """The work tree of a parked series: beside the checkout, so that it is easy to find."""
    return repository.path.with_name(f"{repository.path.name}-resolve")


def _state(repository: Repository) -> Path:
    return repository.path / ".git" / "tqforge" / _STATE


def read(repository: Repository) -> Parked | None:
    """The parked series, or None."""
    path = _state(repository)
    if not path.exists():
        return None
    raw = json.loads(path.read_text(encoding="utf-8"))
    return Parked(raw["base_commit"], raw["current"], raw["stood"], tuple(raw["skipped"]))


def require(repository: Repository) -> Parked:
    """The parked series. Raises UsageError when there is none."""
    if parked := read(repository):
        return parked
    raise UsageError("No patch is waiting to be resolved.", remedy="Run `tqforge patch apply`.")


def start(repository: Repository, base_commit: str, series: Series) -> Failure | None:
    """Apply a series step by step in the resolve work tree; the first failure is parked there."""
    abort(repository)
    work = add_aside(repository, folder(repository), base_commit)
    work.git("checkout-index", "--all", "--force")
    work.git("update-index", "--refresh", "-q", check=False)
    return _go(repository, work, base_commit, series.patches, ())


def _go(
    repository: Repository, work: Repository, base_commit: str, patches: tuple[Patch, ...], skipped: tuple[str, ...]
) -> Failure | None:
    for patch in patches:
        before = work.resolve("HEAD")
        done = work.git(*AM, "--no-3way", "--", patch.path, check=False)
        if done.ok and work.resolve("HEAD") != before:
            continue
        failure = explain(work, patch, done)
        _park(work, patch)
        parked = Parked(base_commit, patch.name, before, skipped)
        fs.write_text(_state(repository), json.dumps(asdict(parked)) + "\n")
        return failure
    return None


def _park(work: Repository, patch: Patch) -> None:
    """Leave the best starting point: conflict marks by a 3-way merge, else all hunks that fit and `.rej` files."""
    work.git("am", "--abort", check=False)
    before = work.resolve("HEAD")
    work.git(*AM, "--3way", "--", patch.path, check=False)
    if work.resolve("HEAD") == before and not work.changes():
        work.git("apply", "--reject", "--index", "--", patch.path, check=False)
        work.git("apply", "--reject", "--", patch.path, check=False)


def go_on(repository: Repository, series: Series, *, skip: bool = False) -> Failure | None:
    """After a person resolved the parked patch (or with `skip` gave it up): commit it, then apply the rest."""
    parked = require(repository)
    work = Repository(folder(repository))
    if skip:
        work.git("am", "--skip", check=False)
        skipped = (*parked.skipped, parked.current)
    else:
        _commit(work, series.find(parked.current), parked.stood)
        skipped = parked.skipped
    place = next(number for number, patch in enumerate(series.patches) if patch.name == parked.current)
    return _go(repository, work, parked.base_commit, series.patches[place + 1 :], skipped)


def merged(repository: Repository) -> bool:
    """Whether the 3-way merge has already committed the parked patch; it wants a look, nothing more."""
    parked, work = require(repository), Repository(folder(repository))
    return not _in_progress(work) and work.resolve("HEAD") != parked.stood


def _in_progress(work: Repository) -> bool:
    return Path(work.line("rev-parse", "--path-format=absolute", "--git-path", "rebase-apply")).exists()


def _commit(work: Repository, patch: Patch, stood: str) -> None:
    unmerged = work.line("diff", "--name-only", "--diff-filter=U").splitlines()
    rejected = [str(path.relative_to(work.path)) for path in work.path.rglob("*.rej")]
    if left := unmerged + rejected:
        raise PatchError(
            f"{patch.name} is not resolved yet: {', '.join(left[:8])}.",
            where=str(work.path),
            remedy=f"Edit them, remove *.rej, run `git -C {work.path} add -A`, then `tqforge patch apply --continue`.",
        )
    if not _in_progress(work) and work.resolve("HEAD") != stood:
        return  # the 3-way merge or the person committed it
    done = work.git("am", "--continue", check=False)
    if not done.ok:
        raise PatchError(
            f"{patch.name} cannot be committed: {done.tail(3)}",
            where=str(work.path),
            remedy="Run `git add -A` there, or give the patch up with `tqforge patch apply --skip`.",
        )


def finish(repository: Repository) -> tuple[str, Parked]:
    """The head of a series that is now whole, and what was parked. The work tree stays until `abort`."""
    return Repository(folder(repository)).resolve("HEAD"), require(repository)


def removed_beyond(old: str, new: str) -> list[str]:
    """Lines that the new form of a patch removes and the old one did not."""
    removed = [
        net_lines([line for diff in parse(text).files for hunk in diff.hunks for line in hunk.lines])[0]
        for text in (old, new)
    ]
    return sorted((removed[1] - removed[0]).elements())


def abort(repository: Repository) -> bool:
    """Throw the resolve work tree away; returns whether there was one."""
    present = folder(repository).exists()
    remove_aside(repository, folder(repository))
    _state(repository).unlink(missing_ok=True)
    return present


def instructions(repository: Repository, failure: Failure, where: str) -> PatchError:
    """The message of a parked patch: what, where, and the three commands to go on."""
    path = folder(repository)
    first = "look at the 3-way merge" if merged(repository) else "edit the files there, then"
    command = f"git -C {path} " + ("show" if merged(repository) else "add -A")
    return PatchError(
        f"{failure.sentence()}.",
        where=where,
        remedy=(
            f"The checkout was not changed; the patch is parked in {path}.\n"
            f"        1. {first}: {command}\n"
            f"        2. tqforge patch apply --continue   (or --skip to drop this patch)\n"
            f"        3. or give up: tqforge patch apply --abort"
        ),
    )
