"""Get the source of a base, from an archive, git or a folder, and check it against the pinned tree.

The base commit is made from the tree, with a fixed identity and date: every source gives the same commit.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters import archive, fs, index, proc
from tqforge.adapters.git import Repository
from tqforge.core.reporter import Reporter
from tqforge.core.values import Archive, Base
from tqforge.errors import CheckoutError, IntegrityError, UsageError
from tqforge.workspace import Workspace

ARCHIVE, GIT = "archive", "git"
BASE_REF = "refs/tqforge/base"
#: In an archive the submodule's `.git` is a file that points outside; it is no part of the tree.
_POINTER = ".git"
_SDIST = Path("vendor/llama.cpp")
_BINDINGS_STAMP = "archive.sha256"


@dataclass(frozen=True)
class Source:
    """Where a base comes from; `kind` is archive, git, file, folder or repository."""

    kind: str
    where: str

    @classmethod
    def parse(cls, text: str, base: Base) -> Source:
        """`archive`, `git`, an address with a scheme, or a path. Raises UsageError."""
        if text == ARCHIVE:
            return cls("archive", f"{base.archive.project} {base.archive.version}")
        if text == GIT:
            return cls("git", base.repository)
        if "://" in text:
            return cls("git", text.removeprefix("git+"))
        path = Path(text).expanduser().absolute()
        if path.is_file():
            return cls("file", str(path))
        if (path / _SDIST).is_dir():
            path = path / _SDIST
        if path.is_dir():
            # a `.git` file may be the dangling pointer of an unpacked archive
            return cls("repository" if Repository(path).is_readable() else "folder", str(path))
        raise UsageError(
            f"--source '{text}' is not archive, git, a git URL or an existing path.",
            remedy="Use --source archive, --source git, or the path of a llama.cpp folder, repository or archive.",
        )


def wanted(pin: Archive) -> index.Wanted:
    """Return what to ask the package index for."""
    return index.Wanted(project=pin.project, version=pin.version, sha256=pin.sha256, source=True, size=pin.size)


def obtain_archive(workspace: Workspace, reporter: Reporter, pin: Archive) -> Path:
    """Return the verified archive, from the workspace or the package index."""
    return index.obtain(workspace.downloads, wanted(pin), reporter)


def ensure_base(workspace: Workspace, reporter: Reporter, base: Base, source: str) -> tuple[Repository, str]:
    """Import a base if needed; return its repository and the id of the base commit."""
    repository = Repository(workspace.checkout(base.name))
    present = imported(repository, base)
    origin = Source.parse(source, base)
    if present and origin.kind in ("archive", "git"):
        return repository, present
    with fs.disk_errors(repository.path):
        if not repository.exists():
            if repository.path.exists() and any(repository.path.iterdir()):
                raise CheckoutError(
                    "The checkout folder is not a repository.", where=str(repository.path), remedy="Move it away."
                )
            with fs.atomic_dir(repository.path) as fresh:
                _import(workspace, reporter, Repository.init(fresh), base, origin)
        else:
            _import(workspace, reporter, repository, base, origin)
    return repository, imported(repository, base)


def imported(repository: Repository, base: Base) -> str:
    """Return the base commit in the repository, or an empty string if this base is not in it."""
    if not repository.exists():
        return ""
    commit, tree = (repository.resolve(BASE_REF), repository.tree(BASE_REF))
    return commit if tree == base.tree else ""


def _import(workspace: Workspace, reporter: Reporter, repository: Repository, base: Base, origin: Source) -> None:
    reporter.step(f"{base.title} from {origin.kind} {origin.where}")
    tree = import_tree(workspace, reporter, repository, base, origin)
    if tree != base.tree:
        raise IntegrityError(
            f"This is not {base.title}: its tree id is {tree}, the pin says {base.tree}.",
            where=origin.where,
            remedy="Use an unchanged copy of the pinned commit, or --source archive.",
        )
    set_base(repository, base)


def set_base(repository: Repository, base: Base) -> str:
    """Create the base commit from the pinned tree, which must be in the repository."""
    commit = repository.commit_tree(base.tree, f"llama.cpp {base.commit}\n")
    repository.git("update-ref", BASE_REF, commit)
    return commit


def import_tree(workspace: Workspace, reporter: Reporter, repository: Repository, base: Base, origin: Source) -> str:
    """Import a source into the repository and return the id of its tree."""
    if origin.kind == "git":
        with reporter.meter(f"fetch {base.commit[:12]}", 100) as meter:
            commit = repository.fetch(origin.where, base.commit, progress=meter.update)
        if commit != base.commit:
            raise IntegrityError(f"git returned commit {commit} for {base.commit}.", where=origin.where)
        return repository.tree(commit)
    if origin.kind == "folder":
        return add_folder(repository, Path(origin.where))
    if origin.kind == "repository":
        return add_repository(reporter, repository, Path(origin.where), base)
    path = (
        obtain_archive(workspace, reporter, base.archive)
        if origin.kind == "archive"
        else checked_file(Path(origin.where), base.archive)
    )
    return import_archive(reporter, repository, path, base.archive, bindings=workspace.bindings(base.name))


def checked_file(path: Path, pin: Archive) -> Path:
    """Check an archive of the user before it is opened."""
    found = fs.sha256_file(path)
    if found != pin.sha256:
        raise IntegrityError(
            f"The archive's sha256 is {found}, the pin says {pin.sha256}.",
            where=str(path),
            remedy=f"Use an unchanged {pin.filename}, or --source archive.",
        )
    return path


def import_archive(
    reporter: Reporter, repository: Repository, path: Path, pin: Archive, *, bindings: Path | None = None
) -> str:
    """Import the llama.cpp of a verified archive, and extract its Python bindings to `bindings`."""
    with _scratch(repository) as scratch, _unpacking(reporter, path) as progress:
        folders = {pin.source: scratch / "source"}
        if bindings is None:
            archive.extract_tar(path, folders, skip=(_POINTER,), progress=progress)
        else:
            with fs.atomic_dir(bindings) as target:
                folders[pin.bindings] = target / "llama_cpp"
                archive.extract_tar(path, folders, skip=(_POINTER,), progress=progress)
                fs.write_text(target / _BINDINGS_STAMP, f"{pin.sha256}\n")
        return repository.add_all(scratch / "source", scratch / "index")


def ensure_bindings(workspace: Workspace, reporter: Reporter, base: Base) -> Path:
    """Return the folder with the `llama_cpp` package of a base, for the Python path of a child process."""
    target, pin = workspace.bindings(base.name), base.archive
    stamp = target / _BINDINGS_STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == pin.sha256:
        return target
    path = obtain_archive(workspace, reporter, pin)
    with fs.atomic_dir(target) as fresh, _unpacking(reporter, path) as progress:
        archive.extract_tar(path, {pin.bindings: fresh / "llama_cpp"}, progress=progress)
        fs.write_text(fresh / _BINDINGS_STAMP, f"{pin.sha256}\n")
    return target


@contextmanager
def _unpacking(reporter: Reporter, path: Path) -> Iterator[Callable[[int], None]]:
    """Show progress by the position in the unpacked stream, estimated as three times the packed size."""
    total = 3.0 * path.stat().st_size
    with reporter.meter(f"unpack {path.name}", total) as meter:
        yield lambda offset: meter.update(min(float(offset), total))


@contextmanager
def _scratch(repository: Repository) -> Iterator[Path]:
    """Create a temporary folder inside the repository's git folder, and remove those of killed runs."""
    root = repository.path / ".git" / "tqforge"
    root.mkdir(parents=True, exist_ok=True)
    fs.remove_leftovers(root)
    scratch = Path(tempfile.mkdtemp(prefix=".import.", suffix=".part", dir=root))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def add_folder(repository: Repository, folder: Path) -> str:
    """Import the files of a folder, which is only read."""
    with _scratch(repository) as scratch:
        return repository.add_all(folder, scratch / "index")


def add_repository(reporter: Reporter, repository: Repository, path: Path, base: Base) -> str:
    """Import the pinned commit of a repository of the user, or its files if it lacks that commit.

    The repository is only read.
    """
    theirs = Repository(path)
    tree = theirs.tree(base.commit)
    if not tree:
        return add_folder(repository, path)
    reporter.tell(f"  using commit {base.commit[:12]} of that repository, not its working tree")
    return copy_tree(repository, theirs, tree)


def copy_tree(repository: Repository, theirs: Repository, tree: str) -> str:
    """Copy a tree between repositories through files, without writing to theirs (not even to its index)."""
    with _scratch(repository) as scratch:
        files = scratch / "source"
        files.mkdir()
        # no protocol is allowed, so that a partial clone cannot fetch (and so write) while it is read
        env = {"GIT_INDEX_FILE": str(scratch / "theirs"), "GIT_ALLOW_PROTOCOL": "none"}
        try:
            theirs.git("read-tree", tree, env=env)
            theirs.git("checkout-index", "--all", f"--prefix={files}/", env=env)
        except proc.ProcessError as error:
            raise CheckoutError(
                f"The repository does not hold all files of that commit: {error.done.tail(1)}",
                where=str(theirs.path),
                remedy="It may be a partial clone: use --source git or --source archive.",
            ) from error
        return repository.add_all(files, scratch / "index")
