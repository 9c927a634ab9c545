"""The only door to git.

Two kinds of calls: hermetic ones (`Repository.git`), whose result depends on their input alone, whatever the user's
configuration, locale, time zone or environment; and `fetch`, which keeps the user's configuration because proxies and
credentials live there. Commits and files are read with GitPython.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tqforge.adapters import fs, proc
from tqforge.errors import DiskFullError, DownloadError, ToolchainError

if TYPE_CHECKING:
    from git import Repo  # noqa: TID251 - this module is the door

#: GIT_CONFIG_GLOBAL came with 2.32, `git merge-tree --write-tree` with 2.38.
OLDEST, OLDEST_TO_MERGE = (2, 32), (2, 38)
INSTALL = "Install git 2.38 or newer."
IDENTITY = "tqforge"
EMAIL = "tqforge@localhost"
#: Settings that would change bytes or ids. They win over the repository's own configuration as well.
_SETTINGS = {
    "advice.detachedHead": "false",
    "am.keepcr": "true",
    "am.threeWay": "false",
    "apply.whitespace": "nowarn",
    "checkout.workers": "0",  # one per core: writing the files is most of an `apply`
    "commit.cleanup": "default",
    "commit.gpgSign": "false",
    "core.abbrev": "40",
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.eol": "lf",
    "core.excludesFile": os.devnull,
    "core.fileMode": "true",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "true",
    "core.safecrlf": "false",
    "core.whitespace": "-trailing-space,-space-before-tab,-blank-at-eof",
    "diff.algorithm": "myers",
    "diff.colorMoved": "no",
    "diff.context": "3",
    "diff.indentHeuristic": "true",
    "diff.interHunkContext": "0",
    "diff.mnemonicPrefix": "false",
    "diff.noprefix": "false",
    "diff.orderFile": os.devnull,
    "diff.renames": "false",
    "diff.submodule": "short",
    "diff.suppressBlankEmpty": "false",
    "format.coverLetter": "false",
    "format.from": "false",
    "format.notes": "false",
    "format.numbered": "false",
    "format.signOff": "false",
    "format.thread": "false",
    "format.useAutoBase": "false",
    "gc.auto": "0",
    "i18n.commitEncoding": "UTF-8",
    "i18n.logOutputEncoding": "UTF-8",
    "maintenance.auto": "false",
    "merge.conflictStyle": "merge",
    "merge.renames": "true",
    "rerere.enabled": "false",
    "safe.directory": "*",
}
_USAGE = 129  # the exit code of a git that does not know an option
_PERCENT = re.compile(r"^(?:remote: )?(Counting|Compressing|Receiving|Resolving)[^:]*:\s+(\d+)%")


def _cleared() -> dict[str, str | None]:
    return {name: None for name in os.environ if name.startswith("GIT_")}


def hermetic_env(ceiling: Path) -> dict[str, str | None]:
    """The changes to the environment that make a git call depend on its input alone."""
    env = _cleared()
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(ceiling),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "false",
        "GIT_PAGER": "cat",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_AUTHOR_NAME": IDENTITY,
        "GIT_AUTHOR_EMAIL": EMAIL,
        "GIT_COMMITTER_NAME": IDENTITY,
        "GIT_COMMITTER_EMAIL": EMAIL,
        "EMAIL": None,
        "LC_ALL": "C",
        "LANGUAGE": "C",
        "TZ": "UTC",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    }
    for number, (key, value) in enumerate(_SETTINGS.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def _run(argv: Sequence[str | Path], *, check: bool = True, **options: object) -> proc.Completed:
    try:
        done = proc.run(["git", *argv], check=False, **options)  # type: ignore[arg-type]
    except FileNotFoundError:
        raise ToolchainError("git was not found.", remedy=INSTALL) from None
    if not done.ok and fs.names_full_disk(done.stdout + done.stderr):
        raise DiskFullError("The disk is full.", where=str(options.get("cwd", "")))
    if check and not done.ok:
        raise proc.ProcessError(done)
    return done


@dataclass(frozen=True, kw_only=True)
class Merge:
    """The result of a three-way merge: its tree, the files in conflict, and git's notes as (kind, paths)."""

    tree: str
    clean: bool
    files: tuple[str, ...]
    notes: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Repository:
    """A repository with a work tree at `path`. Its git folder is `path/.git` (a file in a linked work tree)."""

    path: Path

    def git(
        self,
        *argv: str | Path,
        check: bool = True,
        stdin: str | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float | None = None,
    ) -> proc.Completed:
        """Run git hermetically in the work tree. Raises proc.ProcessError when `check` and it failed."""
        changes = hermetic_env(self.path.parent) | dict(env or {})
        return _run(argv, check=check, cwd=self.path, env=changes, stdin=stdin, timeout=timeout)

    def line(self, *argv: str | Path, check: bool = True) -> str:
        """The trimmed standard output of a git call; empty when it failed and `check` is false."""
        done = self.git(*argv, check=check)
        return done.stdout.strip() if done.ok else ""

    @classmethod
    def init(cls, path: Path) -> Repository:
        """A new repository without templates and hooks."""
        path.mkdir(parents=True, exist_ok=True)
        repository = cls(path)
        repository.git("init", "--quiet", "--template=", "--initial-branch=series", "--object-format=sha1")
        return repository

    def exists(self) -> bool:
        return (self.path / ".git").exists()

    def resolve(self, revision: str) -> str:
        """The full id of a revision, or an empty string."""
        return self.line("rev-parse", "--verify", "--quiet", "--end-of-options", revision, check=False)

    def tree(self, revision: str) -> str:
        return self.resolve(f"{revision}^{{tree}}")

    def commits(self, first: str, last: str) -> list[str]:
        """The commits after `first` up to `last`, oldest first."""
        return self.line("rev-list", "--reverse", "--first-parent", f"{first}..{last}").split()

    def changes(self) -> list[str]:
        """What differs from HEAD: lines of `git status --porcelain`, ignored files left out."""
        status = self.git("--no-optional-locks", "status", "--porcelain=v1", "--untracked-files=normal", "--no-renames")
        return status.stdout.splitlines()

    def add_all(self, work_tree: Path, index: Path) -> str:
        """Write the content of a folder as a tree, through an index file of its own; the tree id.

        Nothing is left out by ignore files; a `.git` entry is never taken.
        """
        env = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(work_tree), "GIT_DIR": str(self.path / ".git")}
        _run(["add", "--all", "--force", "."], cwd=work_tree, env=hermetic_env(work_tree.parent) | env)
        return self.git("write-tree", env={"GIT_INDEX_FILE": str(index)}).stdout.strip()

    def commit_tree(self, tree: str, message: str, date: str, parents: Sequence[str] = ()) -> str:
        """A commit of fixed identity; the same input gives the same id everywhere."""
        argv = ["commit-tree", tree, "-F", "-"]
        for parent in parents:
            argv += ["-p", parent]
        env = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        return self.git(*argv, stdin=message, env=env).stdout.strip()

    def merge(self, base: str, ours: str, theirs: str, index: Path, date: str) -> Merge:
        """Merge trees three ways, with rename detection, without a work tree. Attributes are those of `ours`."""
        start = self.commit_tree(base, "base", date)
        sides = [self.commit_tree(tree, name, date, [start]) for name, tree in (("ours", ours), ("theirs", theirs))]
        files = index.parent / "attributes"
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir()
        env = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(files), "GIT_DIR": str(self.path / ".git")}
        self.git("read-tree", ours, env=env)
        self.git("checkout-index", f"--prefix={files}/", "--", ".gitattributes", env=env, check=False)
        argv = ["merge-tree", "--write-tree", "-z", "--name-only", "--messages", *sides]
        done = _run(argv, check=False, cwd=files, env=hermetic_env(files.parent) | env)
        if done.code == _USAGE:
            raise ToolchainError("This git cannot merge without a work tree: it is too old.", remedy=INSTALL)
        if done.code not in (0, 1):
            raise proc.ProcessError(done)
        return _merge_of(done.stdout, clean=done.ok)

    def patch_id(self, patch: str) -> str:
        """`git patch-id --stable` of a patch text; empty for a patch without a change."""
        return (self.git("patch-id", "--stable", stdin=patch).stdout.split() or [""])[0]

    def fetch(self, url: str, revision: str, *, depth: int = 1, progress: Callable[[float, str], None]) -> str:
        """Fetch one revision with the user's own git configuration; the id of its commit. Raises DownloadError."""
        env = _cleared() | {"GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": str(self.path.parent), "LC_ALL": "C"}

        def line(text: str) -> None:
            if found := _PERCENT.match(text):
                progress(float(found[2]), found[1].lower())

        words = ["-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--progress", "--no-tags", "--force"]
        words += ["--no-recurse-submodules", "--no-write-fetch-head", f"--depth={depth}"]
        refspec = f"{revision}:refs/tqforge/fetched"
        done = _run([*words, "--end-of-options", url, refspec], check=False, cwd=self.path, env=env, on_line=line)
        if not done.ok:
            raise DownloadError(
                f"git could not fetch {revision[:12]}: {proc.last_error(done.tail()) or 'no message'}", where=url
            )
        return self.resolve("refs/tqforge/fetched^{commit}")

    def python(self) -> Repo:
        """The repository as GitPython sees it, for reading."""
        from git import Repo  # noqa: TID251, PLC0415 - this module is the door; the import is slow

        repo = Repo(self.path)
        settings = {name: value for name, value in hermetic_env(self.path.parent).items() if value is not None}
        repo.git.update_environment(**settings, GIT_DIR=str(repo.git_dir))
        return repo


def _merge_of(output: str, *, clean: bool) -> Merge:
    """Read `git merge-tree -z`: tree, files in conflict, an empty field, then groups of count, paths, kind, text."""
    fields = output.split("\0")
    end = fields.index("", 1)
    groups, place = [], end + 1
    while place < len(fields) and fields[place].isdigit():
        count = int(fields[place])
        paths = fields[place + 1 : place + 1 + count]
        groups.append((fields[place + 1 + count], tuple(paths)))
        place += count + 3
    return Merge(tree=fields[0], clean=clean, files=tuple(fields[1:end]), notes=tuple(groups))


def remove_stale_lock(repository: Repository) -> None:
    """Remove the index lock of a git that was killed. Only for a repository whose workspace lock is held."""
    with fs.disk_errors(repository.path):
        (repository.path / ".git" / "index.lock").unlink(missing_ok=True)
