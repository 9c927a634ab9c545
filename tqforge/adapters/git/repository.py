"""Run git: hermetic calls (`Repository.git`), and `fetch` with the user's own configuration."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from tqforge.adapters import fs, proc
from tqforge.adapters.git.environment import FIXED_DATE, cleared, hermetic_env
from tqforge.adapters.git.reader import Reader, TreeFiles
from tqforge.errors import DiskFullError, DownloadError, ToolchainError

#: GIT_CONFIG_GLOBAL came with 2.32, `git merge-tree --write-tree` with 2.38.
OLDEST, OLDEST_TO_MERGE = (2, 32), (2, 38)
INSTALL = "Install git 2.38 or newer."
_USAGE = 129  # the exit code of a git that does not know an option
_PERCENT = re.compile(r"^(?:remote: )?(Counting|Compressing|Receiving|Resolving)[^:]*:\s+(\d+)%")


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

    def reader(self) -> Reader:
        """Open the repository for reading."""
        return Reader(self.path, hermetic_env(self.path.parent))

    def files(self, revision: str) -> TreeFiles:
        """Return the files of a commit or tree."""
        return TreeFiles(self.reader(), revision)

    def is_readable(self) -> bool:
        """Return whether there is a repository at all."""
        with self.reader() as reader:
            return reader.is_repository

    def message(self, commit: str) -> str:
        """Return the message of a commit."""
        with self.reader() as reader:
            return reader.message(commit)

    def resolve(self, revision: str) -> str:
        """Return the full id of a revision, or an empty string."""
        with self.reader() as reader:
            return reader.resolve(revision)

    def tree(self, revision: str) -> str:
        """Return the tree id of a revision, or an empty string."""
        return self.resolve(f"{revision}^{{tree}}")

    def commits(self, first: str, last: str) -> list[str]:
        """Return the commits after `first` up to `last`, oldest first."""
        with self.reader() as reader:
            found = [commit for commit, _ in takewhile(lambda row: row[0] != first, reader.first_parents(last))]
        return found[::-1]

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

    def commit_tree(self, tree: str, message: str, parents: Sequence[str] = ()) -> str:
        """Make a commit with fixed identity and date: the same input gives the same id everywhere."""
        argv = ["commit-tree", tree, "-F", "-"]
        for parent in parents:
            argv += ["-p", parent]
        return self.git(*argv, stdin=message, env=FIXED_DATE).stdout.strip()

    def merge(self, base: str, ours: str, theirs: str, index: Path) -> Merge:
        """Merge trees three ways, with rename detection, without a work tree. Attributes are those of `ours`."""
        start = self.commit_tree(base, "base")
        sides = [self.commit_tree(tree, name, [start]) for name, tree in (("ours", ours), ("theirs", theirs))]
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
        env = cleared() | {"GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": str(self.path.parent), "LC_ALL": "C"}

        def line(text: str) -> None:
            if found := _PERCENT.match(text):
                progress(float(found[2]), found[1].lower())

        words = ["-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--progress", "--no-tags", "--force"]
        words += ["--no-recurse-submodules", "--no-write-fetch-head", f"--depth={depth}"]
        refspec = f"{revision}:refs/tqforge/fetched"
        done = _run([*words, "--end-of-options", url, refspec], check=False, cwd=self.path, env=env, on_line=line)
        if not done.ok:
            why = proc.last_error(done.tail()) or "no message"
            raise DownloadError(f"git could not fetch {revision[:12]}: {why}", where=url)
        return self.resolve("refs/tqforge/fetched^{commit}")


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
