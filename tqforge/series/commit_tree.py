"""The files of a commit, read without a checkout."""

from __future__ import annotations

from tqforge.adapters.git import Repository


class CommitTree:
    """The files of one commit of a repository."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._root = repository.python().commit(commit).tree
        self._texts: dict[str, str | None] = {}

    def read(self, path: str) -> str | None:
        """The text of a file; None when it is not there."""
        if path not in self._texts:
            try:
                data = self._root.join(path).data_stream.read()
            except KeyError:
                self._texts[path] = None
            else:
                self._texts[path] = data.decode("utf-8", "replace")
        return self._texts[path]

    def names(self, folder: str) -> list[str]:
        """The paths of the files below a folder."""
        from git import Blob  # noqa: TID251, PLC0415 - only to tell files from folders; the import is slow

        try:
            tree = self._root.join(folder)
        except KeyError:
            return []
        return sorted(str(item.path) for item in tree.traverse() if isinstance(item, Blob))
