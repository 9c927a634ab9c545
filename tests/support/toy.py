"""A toy upstream: a small tree, its archive, its pins, and patches made on it with plain git."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from tqforge.adapters.console import Output
from tqforge.context import Context
from tqforge.core.values import Archive, Base, Checkout
from tqforge.series.checkout import prepare
from tqforge.series.lock import SeriesPaths
from tqforge.workspace import Workspace

PROJECT = "toy-llama"
#: In-tree build backend: pip reads an archive's metadata with it, without anything installed.
BACKEND = """
import os
def _write(folder):
    os.makedirs(f"{folder}/toy_llama-1.0.dist-info", exist_ok=True)
    with open(f"{folder}/toy_llama-1.0.dist-info/METADATA", "w") as out:
        out.write("Metadata-Version: 2.1\\nName: toy-llama\\nVersion: 1.0\\n")
    return "toy_llama-1.0.dist-info"
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    return _write(folder)
def build_wheel(*args, **kwargs):
    raise SystemExit("never built")
"""
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "toy-llama"
version = "1.0"
"""
TREE: dict[str, str] = {
    "src/quants.c": "".join(f"int line_{number};\n" for number in range(1, 61)),
    "src/cache.cpp": "".join(f"cache line {number}\n" for number in range(1, 41)),
    "include/types.h": "enum type {\n    F32 = 0,\n    F16 = 1,\n    COUNT = 2,\n};\n",
    "docs/windows.txt": "one\r\ntwo\r\n",
    ".gitignore": "*.log\n",
    "kept.log": "tracked although ignored\n",
    "tools/run.sh": "#!/bin/sh\necho hello\n",
}


def git(path: Path, *argv: str, env: dict[str, str] | None = None, stdin: str | None = None) -> str:
    """Plain git with a null configuration."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    clean |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "tqforge",
        "GIT_AUTHOR_EMAIL": "tqforge@localhost",
        "GIT_COMMITTER_NAME": "tqforge",
        "GIT_COMMITTER_EMAIL": "tqforge@localhost",
        "GIT_AUTHOR_DATE": "2026-10-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-10-01T00:00:00Z",
        **(env or {}),
    }
    argv = ("-c", "core.autocrlf=false", "-c", "protocol.file.allow=always", *argv)
    data = stdin.encode() if stdin is not None else None
    done = subprocess.run(["git", *argv], cwd=path, env=clean, input=data, check=True, capture_output=True)
    return done.stdout.decode().strip("\n")


def fill(folder: Path, tree: dict[str, str]) -> None:
    """Write a tree: `.sh` files are executable, a value `-> x` is a symbolic link."""
    for name, text in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text[3:])
            continue
        path.write_bytes(text.encode())
        path.chmod(0o755 if name.endswith(".sh") else 0o644)


def repository(folder: Path, tree: dict[str, str]) -> tuple[str, str]:
    """A repository with one commit of the tree; commit id and tree id."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "master")
    return commit(folder, tree, "upstream")


def commit(folder: Path, tree: dict[str, str], message: str) -> tuple[str, str]:
    """Replace the content of a repository by a tree, as one commit."""
    if tracked := git(folder, "ls-files"):
        assert tracked
        git(folder, "rm", "-rqf", ".")
    fill(folder, tree)
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD"), git(folder, "rev-parse", "HEAD^{tree}")


def add_member(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def sdist(path: Path, tree: dict[str, str], version: str = "1.0") -> str:
    """A source archive like llama-cpp-python's; its sha256."""
    top = f"toy_llama-{version}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        add_member(tar, f"{top}/pyproject.toml", PYPROJECT.encode())
        add_member(tar, f"{top}/backend.py", BACKEND.encode())
        add_member(tar, f"{top}/PKG-INFO", f"Metadata-Version: 2.1\nName: toy-llama\nVersion: {version}\n".encode())
        add_member(tar, f"{top}/llama_cpp/__init__.py", b"__version__ = '1.0'\n")
        add_member(tar, f"{top}/vendor/llama.cpp/.git", b"gitdir: ../../.git/modules/x\n")
        for name, text in tree.items():
            if text.startswith("-> "):
                info = tarfile.TarInfo(f"{top}/vendor/llama.cpp/{name}")
                info.type, info.linkname = tarfile.SYMTYPE, text[3:]
                tar.addfile(info)
            else:
                mode = 0o755 if name.endswith(".sh") else 0o644
                add_member(tar, f"{top}/vendor/llama.cpp/{name}", text.encode(), mode)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass
class Toy:
    """One toy project: upstream repository, archive, pins, series and workspace below one folder."""

    root: Path
    tree: dict[str, str] = field(default_factory=lambda: {**TREE, "link.txt": "-> docs/windows.txt"})

    def __post_init__(self) -> None:
        self.upstream = self.root / "upstream"
        commit_id, tree_id = repository(self.upstream, self.tree)
        self.archive = self.root / "index" / "toy_llama-1.0.tar.gz"
        pin = Archive(
            project=PROJECT,
            version="1.0",
            filename=self.archive.name,
            sha256=sdist(self.archive, self.tree),
            source="vendor/llama.cpp",
            bindings="llama_cpp",
        )
        self.base = Base(
            name="toy",
            title="toy 1.0",
            repository=self.upstream.as_uri(),
            commit=commit_id,
            tree=tree_id,
            license="MIT",
            archive=pin,
        )
        self.paths = SeriesPaths.of("toy", self.root / "patches")
        self.paths.folder.mkdir()

    def context(self, name: str = "workspace") -> Context:
        return Context(workspace=Workspace(self.root / name), out=Output(quiet=True))

    def pinned(self, **changes: object) -> Base:
        return replace(self.base, archive=replace(self.base.archive, **changes))  # type: ignore[arg-type]

    def add_patch(self, name: str, changes: dict[str, tuple[str, str]], message: str = "") -> Path:
        """A patch on top of the series: `changes` maps a file to (old text, new text); no old text adds the file."""
        work = self.root / "work"
        if not work.exists():
            repository(work, self.tree)
        for file, (old, new) in changes.items():
            path = work / file
            if not old:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(new.encode())
                continue
            text = path.read_bytes().decode()
            assert old in text
            path.write_bytes(text.replace(old, new, 1).encode())
        git(work, "add", "-A", "-f")
        text = f"toy : {name}\n\nBecause.\n\n{message or self.trailers(name)}"
        git(work, "commit", "-q", "--allow-empty", "-m", text)
        target = self.paths.folder / f"{name}.patch"
        target.write_text(self.format(work, "-1"), newline="")
        with (self.paths.folder / "series").open("a") as out:
            out.write(f"{name}.patch\n")
        return target

    def variant(self, name: str, changes: dict[str, str | None]) -> Path:
        """A folder with the tree as another upstream has it; None deletes a file."""
        tree = {path: text for path, text in {**self.tree, **changes}.items() if text is not None}
        folder = self.root / name
        fill(folder, tree)
        return folder

    @staticmethod
    def trailers(name: str) -> str:
        return f"Patch-Name: {name}\nWhy: the toy needs it\nUpstream-Status: Pending\nGuard: test-toy {name}\n"

    @staticmethod
    def format(work: Path, *which: str) -> str:
        flags = ("--zero-commit", "--no-signature", "--full-index", "-N", "--no-stat", "--no-renames", "--stdout")
        return git(work, "format-patch", *flags, *which) + "\n"

    def three(self) -> None:
        """Three patches, the third stands on the first."""
        self.add_patch("one", {"src/quants.c": ("int line_10;\n", "int line_10;\nint added_one;\n")})
        self.add_patch("two", {"src/cache.cpp": ("cache line 20\n", "cache line twenty\n")})
        self.add_patch("three", {"src/quants.c": ("int added_one;\n", "int added_one;\nint added_three;\n")})


def run(toy: Toy, source: str = "", name: str = "workspace", **options: bool) -> Checkout:
    """Prepare the checkout of the toy in one of its workspaces."""
    context = toy.context(name)
    with context.workspace.lock("test"):
        return prepare(
            context.workspace, context.out, toy.base, source=source or str(toy.archive), paths=toy.paths, **options
        )
