"""The source of a base: an archive, a git repository or something the user has, all checked against the pinned tree.

Whatever the source, the base becomes the same commit: it is made from the tree alone, with fixed identity and date.
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
from tqforge.context import Context
from tqforge.core.values import Archive, Base
from tqforge.errors import CheckoutError, IntegrityError, UsageError

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
            f"--source '{text}' is neither archive, git, an address, nor a path that exists.",
            remedy="Use --source archive, --source git, or the path of a llama.cpp folder, repository or archive.",
        )


def wanted(pin: Archive) -> index.Wanted:
    """The pinned archive as a question to the package index."""
    return index.Wanted(project=pin.project, version=pin.version, sha256=pin.sha256, source=True, size=pin.size)


def obtain_archive(ctx: Context, pin: Archive) -> Path:
    """The verified archive, from the workspace or the package index."""
    return index.obtain(ctx.workspace.downloads, wanted(pin), ctx.out)


def ensure_base(ctx: Context, base: Base, source: str) -> tuple[Repository, str]:
    """The repository of a base, with the base imported; and the id of the base commit."""
    repository = Repository(ctx.workspace.checkout(base.name))
    present = imported(repository, base)
    origin = Source.parse(source, base)
    if present and origin.kind in ("archive", "git"):
        return repository, present
    with fs.disk_errors(repository.path):
        if not repository.exists():
            if repository.path.exists() and any(repository.path.iterdir()):
                raise CheckoutError(
                    "The folder of the checkout is no repository.", where=str(repository.path), remedy="Move it away."
                )
            with fs.atomic_dir(repository.path) as fresh:
                _import(ctx, Repository.init(fresh), base, origin)
        else:
            _import(ctx, repository, base, origin)
    return repository, imported(repository, base)


def imported(repository: Repository, base: Base) -> str:
    """The base commit in the repository, or an empty string when this base is not in it."""
    if not repository.exists():
        return ""
    commit, tree = (repository.resolve(BASE_REF), repository.tree(BASE_REF))
    return commit if tree == base.tree else ""


def _import(ctx: Context, repository: Repository, base: Base, origin: Source) -> None:
    ctx.out.step(f"{base.title} from {origin.kind} {origin.where}")
    tree = import_tree(ctx, repository, base, origin)
    if tree != base.tree:
        raise IntegrityError(
            f"This is not {base.title}: its tree id is {tree}, the pin says {base.tree}.",
            where=origin.where,
            remedy="Use an unchanged copy of the pinned commit, or --source archive.",
        )
    set_base(repository, base)


def set_base(repository: Repository, base: Base) -> str:
    """Make the base commit from the pinned tree, which must be in the repository."""
    commit = repository.commit_tree(base.tree, f"llama.cpp {base.commit}\n")
    repository.git("update-ref", BASE_REF, commit)
    return commit


def import_tree(ctx: Context, repository: Repository, base: Base, origin: Source) -> str:
    """Bring the objects of a source into the repository; the id of its tree."""
    if origin.kind == "git":
        with ctx.out.meter(f"fetch {base.commit[:12]}", 100) as meter:
            commit = repository.fetch(origin.where, base.commit, progress=meter.update)
        if commit != base.commit:
            raise IntegrityError(f"git gave commit {commit} for {base.commit}.", where=origin.where)
        return repository.tree(commit)
    if origin.kind == "folder":
        return add_folder(repository, Path(origin.where))
    if origin.kind == "repository":
        return add_repository(ctx, repository, Path(origin.where), base)
    path = (
        obtain_archive(ctx, base.archive)
        if origin.kind == "archive"
        else checked_file(Path(origin.where), base.archive)
    )
    return import_archive(ctx, repository, path, base.archive, ctx.workspace.bindings(base.name))


def checked_file(path: Path, pin: Archive) -> Path:
    """An archive that the user has, checked before it is opened."""
    found = fs.sha256_file(path)
    if found != pin.sha256:
        raise IntegrityError(
            f"The archive's sha256 is {found}, the pin says {pin.sha256}.",
            where=str(path),
            remedy=f"Use an unchanged {pin.filename}, or --source archive.",
        )
    return path


def import_archive(ctx: Context, repository: Repository, path: Path, pin: Archive, bindings: Path | None = None) -> str:
    """Import the llama.cpp of a verified archive; with `bindings`, its Python bindings are unpacked there as well."""
    with _scratch(repository) as scratch, _unpacking(ctx, path) as progress:
        folders = {pin.source: scratch / "source"}
        if bindings is None:
            archive.extract_tar(path, folders, skip=(_POINTER,), progress=progress)
        else:
            with fs.atomic_dir(bindings) as target:
                folders[pin.bindings] = target / "llama_cpp"
                archive.extract_tar(path, folders, skip=(_POINTER,), progress=progress)
                fs.write_text(target / _BINDINGS_STAMP, f"{pin.sha256}\n")
        return repository.add_all(scratch / "source", scratch / "index")


def ensure_bindings(ctx: Context, base: Base) -> Path:
    """The folder to put on a child's Python path so that it can import the base's own `llama_cpp`."""
    target, pin = ctx.workspace.bindings(base.name), base.archive
    stamp = target / _BINDINGS_STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == pin.sha256:
        return target
    path = obtain_archive(ctx, pin)
    with fs.atomic_dir(target) as fresh, _unpacking(ctx, path) as progress:
        archive.extract_tar(path, {pin.bindings: fresh / "llama_cpp"}, progress=progress)
        fs.write_text(fresh / _BINDINGS_STAMP, f"{pin.sha256}\n")
    return target


@contextmanager
def _unpacking(ctx: Context, path: Path) -> Iterator[Callable[[int], None]]:
    """Progress by the position in the unpacked stream; three times the packed size is close enough for a bar."""
    total = 3.0 * path.stat().st_size
    with ctx.out.meter(f"unpack {path.name}", total) as meter:
        yield lambda offset: meter.update(min(float(offset), total))


@contextmanager
def _scratch(repository: Repository) -> Iterator[Path]:
    """A folder inside the repository's git folder that is gone afterwards; a killed run's is removed first."""
    root = repository.path / ".git" / "tqforge"
    root.mkdir(parents=True, exist_ok=True)
    fs.remove_leftovers(root)
    scratch = Path(tempfile.mkdtemp(prefix=".import.", suffix=".part", dir=root))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def add_folder(repository: Repository, folder: Path) -> str:
    """Import a folder as it lies there; it is only read."""
    with _scratch(repository) as scratch:
        return repository.add_all(folder, scratch / "index")


def add_repository(ctx: Context, repository: Repository, path: Path, base: Base) -> str:
    """Import the pinned commit of a repository that the user has, whatever is checked out there; it is only read.

    Without that commit its files are taken as they lie there.
    """
    theirs = Repository(path)
    tree = theirs.tree(base.commit)
    if not tree:
        return add_folder(repository, path)
    ctx.out.say(f"  commit {base.commit[:12]} is in that repository; its work tree is not looked at")
    return copy_tree(repository, theirs, tree)


def copy_tree(repository: Repository, theirs: Repository, tree: str) -> str:
    """Copy one tree between repositories through files, without writing to theirs (not even to its index)."""
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
