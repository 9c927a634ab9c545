"""A patch that does not apply: what the error carries, and how a person gets on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from toy import Toy, git, run

from tqforge.adapters.git import Repository
from tqforge.base import source
from tqforge.commands.patch import apply
from tqforge.errors import PatchError, UsageError
from tqforge.series import apply as applying
from tqforge.series import resolve, series
from tqforge.series.failures import ApplyError, FailureKind


@pytest.fixture(autouse=True)
def _base(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "load_base", lambda name=None: toy.base)
    toy.three()


def spoil(toy: Toy, name: str, old: str, new: str) -> None:
    path = toy.paths.folder / f"{name}.patch"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def spoil_two(toy: Toy) -> None:
    spoil(toy, "two", "-cache line 20\n", "-cache line 20 of old\n")


def spoil_three(toy: Toy) -> None:
    spoil(toy, "three", " int line_11;\n", " int line_11_of_old;\n")


def command(toy: Toy, **options: Any) -> int:
    return apply.run(toy.context(), patches=toy.paths.folder, source=str(toy.archive), **options)


def continue_(toy: Toy, *, skip: bool = False) -> int:
    return apply.continue_(toy.context(), patches=toy.paths.folder, skip=skip)


def worktree(toy: Toy) -> Path:
    return toy.context().workspace.checkout("toy").with_name("toy-resolve")


def settle(toy: Toy, file: str, old: str, new: str) -> None:
    """Make the change by hand in the worktree of the conflict."""
    work = worktree(toy)
    for path in work.rglob("*.rej"):
        path.unlink()
    path = work / file
    text = path.read_text()
    if "<<<<<<<" in text:
        before, _, rest = text.partition("<<<<<<<")
        ours, _, theirs = rest.partition("\n")[2].partition("=======")
        text = before + ours + theirs.partition(">>>>>>>")[2].partition("\n")[2]
    assert old in text
    path.write_text(text.replace(old, new, 1))
    git(work, "add", "-A")


def test_the_error_carries_failure_patch_and_commits(toy: Toy) -> None:
    good = run(toy)
    spoil_two(toy)
    with pytest.raises(ApplyError) as caught:
        run(toy)
    error = caught.value
    assert (error.failure.kind, error.failure.file) == (FailureKind.CONFLICT, "src/cache.cpp")
    assert (error.failure.hunk, error.failure.hunks) == (1, 1)
    assert error.patch.name == "two.patch"
    assert error.base_commit == good.base_commit
    assert error.head == good.patches[0].commit  # where `two` was tried


def test_the_first_patch_is_tried_on_the_base(toy: Toy) -> None:
    good = run(toy)
    spoil(toy, "one", " int line_9;\n", " int line_nine;\n")
    with pytest.raises(ApplyError) as caught:
        run(toy)
    assert caught.value.head == caught.value.base_commit == good.base_commit


def test_the_series_is_imported_and_applied_once(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, `patch apply` loaded, imported and applied everything a second time to find the failure again."""
    spoil_two(toy)
    counts = {"load": 0, "base": 0, "commit": 0}

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(series, "load", counted("load", series.load))
    monkeypatch.setattr(source, "ensure_base", counted("base", source.ensure_base))
    monkeypatch.setattr(applying, "commit_series", counted("commit", applying.commit_series))
    with pytest.raises(PatchError, match=r"two\.patch does not apply"):
        command(toy)
    assert counts == {"load": 1, "base": 1, "commit": 1}


def test_the_worktree_stands_where_the_patch_was_tried(toy: Toy) -> None:
    good = run(toy)
    spoil_two(toy)
    with pytest.raises(PatchError):
        command(toy)
    work = worktree(toy)
    assert git(work, "rev-parse", "HEAD") == good.patches[0].commit
    assert "added_one" in (work / "src/quants.c").read_text()
    conflict = resolve.current(Repository(good.path))
    assert (conflict.patch, conflict.head) == ("two.patch", good.patches[0].commit)
    assert (conflict.base_commit, conflict.skipped) == (good.base_commit, ())


def test_two_conflicts_one_after_the_other(toy: Toy) -> None:
    command(toy)
    spoil_two(toy)
    spoil_three(toy)
    with pytest.raises(PatchError, match=r"two\.patch does not apply"):
        command(toy)
    settle(toy, "src/cache.cpp", "cache line 20\n", "cache line twenty\n")
    with pytest.raises(PatchError, match=r"three\.patch does not apply: conflict in src/quants\.c") as caught:
        continue_(toy)
    assert "--continue" in caught.value.remedy
    settle(toy, "src/quants.c", "int added_one;\n", "int added_one;\nint added_three;\n")
    assert continue_(toy) == 0
    text = (toy.context().workspace.checkout("toy") / "src/quants.c").read_text()
    assert "int added_one;\nint added_three;\n" in text
    assert not worktree(toy).exists()


def test_every_skipped_patch_is_named(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    command(toy)
    spoil_two(toy)
    spoil_three(toy)
    with pytest.raises(PatchError):
        command(toy)
    with pytest.raises(PatchError, match=r"three\.patch"):
        continue_(toy, skip=True)
    context = toy.context()
    context.out.quiet = False
    assert apply.continue_(context, patches=toy.paths.folder, skip=True) == 0
    said = capsys.readouterr().err
    assert "two.patch was skipped" in said
    assert "three.patch was skipped" in said
    assert series.names(toy.paths.folder) == ["one.patch"]


def test_a_half_resolved_conflict_is_refused_with_its_files(toy: Toy) -> None:
    command(toy)
    spoil_two(toy)
    with pytest.raises(PatchError):
        command(toy)
    before = {path.name: path.read_bytes() for path in toy.paths.folder.iterdir()}
    with pytest.raises(PatchError, match=r"two\.patch is not resolved yet: src/cache\.cpp") as caught:
        continue_(toy)
    assert "add -A" in caught.value.remedy
    assert {path.name: path.read_bytes() for path in toy.paths.folder.iterdir()} == before


def test_a_commit_of_the_user_counts_as_resolved(toy: Toy) -> None:
    command(toy)
    spoil_two(toy)
    with pytest.raises(PatchError):
        command(toy)
    settle(toy, "src/cache.cpp", "cache line 20\n", "cache line 2O\n")
    work = worktree(toy)
    git(work, "-c", "core.editor=true", "am", "--continue")
    assert continue_(toy) == 0
    assert "+cache line 2O\n" in (toy.paths.folder / "two.patch").read_text()


def test_an_empty_resolution_cannot_be_committed(toy: Toy) -> None:
    command(toy)
    spoil_two(toy)
    with pytest.raises(PatchError):
        command(toy)
    work = worktree(toy)
    for path in work.rglob("*.rej"):
        path.unlink()
    git(work, "checkout", "-q", "HEAD", "--", "src/cache.cpp")
    with pytest.raises(PatchError, match=r"two\.patch cannot be committed") as caught:
        continue_(toy)
    assert "--skip" in caught.value.remedy


def test_a_malformed_patch_is_made_again_by_hand(toy: Toy) -> None:
    """Its old text cannot be compared with the new one."""
    command(toy)
    spoil(toy, "two", " cache line 23\n", "")
    with pytest.raises(PatchError, match=r"two\.patch does not apply: broken"):
        command(toy)
    settle(toy, "src/cache.cpp", "cache line 20\n", "cache line twenty\n")
    assert continue_(toy) == 0
    assert "+cache line twenty\n" in (toy.paths.folder / "two.patch").read_text()


def test_a_second_apply_starts_anew_and_abort_ends_it(toy: Toy) -> None:
    command(toy)
    spoil_two(toy)
    for _ in range(2):
        with pytest.raises(PatchError, match=r"two\.patch"):
            command(toy)
    assert apply.abort(toy.context()) == 0
    assert not worktree(toy).exists()
    with pytest.raises(UsageError, match="no conflict"):
        continue_(toy)
    with pytest.raises(UsageError, match="no conflict"):
        continue_(toy, skip=True)
    assert apply.abort(toy.context()) == 0


def test_a_series_that_applies_again_ends_the_conflict(toy: Toy) -> None:
    command(toy)
    good = (toy.paths.folder / "two.patch").read_text()
    spoil_two(toy)
    with pytest.raises(PatchError):
        command(toy)
    (toy.paths.folder / "two.patch").write_text(good)
    assert command(toy) == 0
    assert not worktree(toy).exists()


@pytest.mark.parametrize("discard", [False, True])
def test_json_names_every_commit(toy: Toy, capsys: pytest.CaptureFixture[str], discard: bool) -> None:
    context = toy.context()
    context.out.json_mode = True
    assert apply.run(context, patches=toy.paths.folder, source=str(toy.archive), discard=discard) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in found["patches"]] == ["one.patch", "two.patch", "three.patch"]
    assert found["head"] == found["patches"][-1]["commit"] == git(Path(found["checkout"]), "rev-parse", "HEAD")
    assert found["tree"] == found["patches"][-1]["tree"]
    assert found["reused"] is False


def test_removed_beyond_counts_lines_once_each(toy: Toy) -> None:
    text = (toy.paths.folder / "two.patch").read_text()
    more = text.replace(" cache line 21\n", "-cache line 21\n").replace("@@ -17,7 +17,7 @@", "@@ -17,7 +17,6 @@")
    assert resolve.removed_beyond(text, text) == []
    assert resolve.removed_beyond(text, more) == ["cache line 21"]
    assert resolve.removed_beyond(more, text) == []
