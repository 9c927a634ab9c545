"""Read commits, trees and files of a repository with GitPython. Nothing is written or fetched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from git import Commit, Repo, Tree  # noqa: TID251 - the only module that uses GitPython


class Reader:
    """One repository, opened for reading. Close it with `with`."""

    def __init__(self, path: Path, environment: Mapping[str, str | None]) -> None:
        """Open the repository at `path`. Without one, every revision is unknown."""
        from git import InvalidGitRepositoryError, NoSuchPathError, Repo  # noqa: TID251, PLC0415 - a slow import

        self._repo: Repo | None = None
        users = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("GIT_")}
        try:
            self._repo = Repo(path)  # would follow GIT_COMMON_DIR and others
        except (InvalidGitRepositoryError, NoSuchPathError):
            return
        finally:
            os.environ.update(users)
        self._repo.git.update_environment(
            **{name: value for name, value in environment.items() if value is not None},
            GIT_DIR=str(self._repo.git_dir),
            GIT_COMMON_DIR=str(self._repo.common_dir),
            GIT_OBJECT_DIRECTORY=str(Path(self._repo.common_dir) / "objects"),
            GIT_ALTERNATE_OBJECT_DIRECTORIES="",
            GIT_ALLOW_PROTOCOL="none",  # a partial clone must not fetch while it is read
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the git processes that GitPython keeps."""
        if self._repo is not None:
            self._repo.close()

    @property
    def is_repository(self) -> bool:
        return self._repo is not None

    def resolve(self, revision: str) -> str:
        """Return the full id of a revision, or an empty string."""
        found = self.object(revision)
        return str(found.hexsha) if found is not None else ""

    def first_parents(self, last: str) -> Iterator[tuple[str, str]]:
        """Yield the commit and tree ids from `last` back along first parents; a shallow clone ends early."""
        commit: Commit | None = self.object(f"{last}^{{commit}}")
        while commit is not None:
            yield commit.hexsha, commit.tree.hexsha
            parents = commit.parents
            commit = self.object(parents[0].hexsha + "^{commit}") if parents else None

    def message(self, commit: str) -> str:
        found = self.object(f"{commit}^{{commit}}")
        return str(found.message) if found is not None else ""

    def references(self, prefix: str) -> dict[str, str]:
        """Return the commit id of every reference below `prefix`, by the rest of its name."""
        from git import Reference  # noqa: TID251, PLC0415

        if self._repo is None:
            return {}
        found = Reference.iter_items(self._repo, prefix.rstrip("/"))
        return {item.path.removeprefix(prefix): item.commit.hexsha for item in found}

    def tree(self, revision: str) -> Tree | None:
        """Return GitPython's root tree of a commit or tree, or None."""
        from git import Tree  # noqa: TID251, PLC0415

        found = self.object(f"{revision}^{{tree}}")
        # an object that was found by its id does not know that it is a root
        return Tree(found.repo, found.binsha, Tree.tree_id << 12, "") if found is not None else None

    def object(self, revision: str) -> Any:
        """Return GitPython's object of a revision, or None."""
        from git import BadName, BadObject, GitCommandError  # noqa: TID251, PLC0415

        if self._repo is None:
            return None
        try:
            return self._repo.rev_parse(revision)
        except (BadName, BadObject, GitCommandError, ValueError, LookupError, NotImplementedError):
            return None


class TreeFiles:
    """The files of one commit or tree, read without a checkout."""

    def __init__(self, reader: Reader, revision: str) -> None:
        self._root = reader.tree(revision)
        self._texts: dict[str, str | None] = {}

    def read(self, path: str) -> str | None:
        """Return the text of a file; None when the tree has no such file."""
        if path not in self._texts:
            found = self._entry(path)
            is_file = found is not None and found.type == "blob"
            self._texts[path] = found.data_stream.read().decode("utf-8", "replace") if is_file else None
        return self._texts[path]

    def blob(self, path: str) -> str:
        """Return the object id of a file, or an empty string."""
        found = self._entry(path)
        return str(found.hexsha) if found is not None else ""

    def names(self, folder: str) -> list[str]:
        """Return the paths of the files below a folder."""
        found = self._entry(folder)
        if found is None or found.type != "tree":
            return []
        return sorted(str(item.path) for item in found.traverse() if item.type == "blob")

    def _entry(self, path: str) -> Any:
        try:
            return self._root.join(path) if self._root is not None else None
        except KeyError:
            return None
