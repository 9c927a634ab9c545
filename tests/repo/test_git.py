"""Reading a repository: revisions, commits, trees and files give what git itself gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile import make_hostile
from toy import Toy, commit, git

from tqforge.adapters.git import Repository


@pytest.fixture
def upstream(toy: Toy) -> Path:
    commit(toy.upstream, {**toy.tree, "src/new.c": "int new;\n"}, "second\n\nwith a body")
    commit(toy.upstream, {**toy.tree, "src/new.c": "int newer;\n"}, "third")
    git(toy.upstream, "tag", "-a", "v1", "-m", "a tag")
    git(toy.upstream, "branch", "side", "HEAD~1")
    return toy.upstream


REVISIONS = (
    "HEAD",
    "master",
    "HEAD~1",
    "HEAD^",
    "v1^{commit}",
    "side",
    "HEAD^{tree}",
    "HEAD~2^{tree}",
    "refs/heads/side",
)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_is_what_git_says(upstream: Path, revision: str) -> None:
    wanted = git(upstream, "rev-parse", revision)
    assert Repository(upstream).resolve(revision) == wanted
    assert Repository(upstream).resolve(wanted[:12]) == wanted


@pytest.mark.parametrize("revision", ["nothing", "HEAD~9", "v1^{blob}", "", "-x", "0" * 40 + "^{tree}", "HEAD:nothing"])
def test_an_unknown_revision_is_empty(upstream: Path, revision: str) -> None:
    assert Repository(upstream).resolve(revision) == ""


def test_a_folder_without_repository_has_no_revisions(tmp_path: Path) -> None:
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling/.git").write_text("gitdir: ../nowhere\n")
    for folder in (tmp_path, tmp_path / "missing", tmp_path / "dangling"):
        assert Repository(folder).resolve("HEAD") == ""
        assert not Repository(folder).is_readable()
        assert Repository(folder).files("HEAD").names("src") == []


def test_a_folder_inside_a_repository_is_none(upstream: Path) -> None:
    assert not Repository(upstream / "src").is_readable()


def test_an_empty_repository(tmp_path: Path) -> None:
    repository = Repository.init(tmp_path / "empty")
    assert repository.is_readable()
    assert (repository.resolve("HEAD"), repository.tree("HEAD")) == ("", "")


def test_commits_after_a_commit_oldest_first(upstream: Path) -> None:
    repository = Repository(upstream)
    every = git(upstream, "rev-list", "--reverse", "HEAD").split()
    assert repository.commits(every[0], "HEAD") == every[1:]
    assert repository.commits(every[0], every[1]) == [every[1]]
    assert repository.commits(every[2], "HEAD") == []
    with repository.reader() as reader:
        trees = [git(upstream, "rev-parse", f"{item}^{{tree}}") for item in reversed(every)]
        assert list(reader.first_parents("HEAD")) == list(zip(reversed(every), trees, strict=True))
        assert list(reader.first_parents("nothing")) == []


def test_only_first_parents_count(upstream: Path) -> None:
    start = git(upstream, "rev-parse", "HEAD~2")
    git(upstream, "checkout", "-q", "-b", "other", start)
    commit(upstream, {"a": "b\n"}, "beside")
    git(upstream, "checkout", "-q", "master")
    git(upstream, "merge", "-q", "-s", "ours", "-m", "merged", "other")
    wanted = git(upstream, "rev-list", "--reverse", "--first-parent", f"{start}..HEAD").split()
    assert Repository(upstream).commits(start, "HEAD") == wanted
    assert len(wanted) == 3


def test_a_shallow_clone_ends_early(upstream: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=2", upstream.as_uri(), "shallow")
    with Repository(tmp_path / "shallow").reader() as reader:
        assert len(list(reader.first_parents("HEAD"))) == 2


def test_files_of_a_commit_and_of_a_tree(upstream: Path) -> None:
    repository = Repository(upstream)
    for revision in ("HEAD", repository.tree("HEAD")):
        files = repository.files(revision)
        assert files.read("src/new.c") == "int newer;\n"
        assert files.read("docs/windows.txt") == "one\r\ntwo\r\n"
        assert (files.read("src"), files.read("src/none.c"), files.read("none/x.c")) == (None, None, None)
        assert files.blob("src/new.c") == git(upstream, "rev-parse", "HEAD:src/new.c")
        assert files.blob("src/none.c") == ""
        assert files.names("src") == ["src/cache.cpp", "src/new.c", "src/quants.c"]
        assert files.names("src/new.c") == files.names("none") == []
    assert repository.files("HEAD~1").read("src/new.c") == "int new;\n"
    assert repository.files("nothing").read("src/new.c") is None


def test_bytes_that_are_not_utf_8_are_replaced(toy: Toy) -> None:
    (toy.upstream / "latin.txt").write_bytes(b"caf\xe9\n")
    git(toy.upstream, "add", "latin.txt")
    git(toy.upstream, "commit", "-q", "-m", "latin")
    assert Repository(toy.upstream).files("HEAD").read("latin.txt") == "caf\ufffd\n"


def test_messages_and_references(upstream: Path) -> None:
    repository = Repository(upstream)
    assert repository.message("HEAD~1") == "second\n\nwith a body\n"
    assert repository.message("nothing") == ""
    git(upstream, "update-ref", "refs/tqforge/snapshots/0.1", "HEAD~1")
    git(upstream, "update-ref", "refs/tqforge/snapshots/sub/0.2", "HEAD")
    git(upstream, "pack-refs", "--all")
    git(upstream, "update-ref", "refs/tqforge/snapshots/0.3", "HEAD")
    with repository.reader() as reader:
        head = repository.resolve("HEAD")
        wanted = {"0.1": repository.resolve("HEAD~1"), "sub/0.2": head, "0.3": head}
        assert reader.references("refs/tqforge/snapshots/") == wanted
        assert reader.references("refs/tqforge/none/") == {}


def test_a_linked_worktree_reads_the_same_objects(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"), "HEAD~1")
    linked = Repository(tmp_path / "linked")
    assert linked.resolve("HEAD") == git(upstream, "rev-parse", "HEAD~1")
    assert linked.resolve("master") == git(upstream, "rev-parse", "master")
    assert linked.files("HEAD").read("src/new.c") == "int new;\n"


def test_the_environment_of_the_user_does_not_redirect_it(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = git(upstream, "rev-parse", "HEAD")
    make_hostile(tmp_path / "home", monkeypatch)
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "home/objects"))
    monkeypatch.setenv("GIT_COMMON_DIR", str(tmp_path / "home/common"))
    repository = Repository(upstream)
    assert repository.resolve("HEAD") == wanted
    assert repository.tree("HEAD")
    assert repository.files("HEAD").read("src/new.c") == "int newer;\n"


def test_a_partial_clone_is_not_filled_by_reading(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", upstream.as_uri(), "partial")
    partial = Repository(tmp_path / "partial")
    assert partial.tree("HEAD") == git(upstream, "rev-parse", "HEAD^{tree}")
    before = sorted((tmp_path / "partial/.git/objects").rglob("*"))
    with pytest.raises(ValueError, match="partial"):
        partial.files("HEAD").read("src/new.c")
    assert sorted((tmp_path / "partial/.git/objects").rglob("*")) == before
