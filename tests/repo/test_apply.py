"""Fetch, import and apply on a toy upstream."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import toy as toys
from hostile import make_hostile
from toy import Toy, fill, git, repository, run

from tqforge.base.source import ensure_bindings
from tqforge.errors import CheckoutError, ConfigError, DownloadError, IntegrityError, PatchError, UsageError
from tqforge.series import lock


def test_every_source_gives_the_same_commits(toy: Toy) -> None:
    toy.three()
    unpacked = toy.root / "unpacked/vendor/llama.cpp"
    fill(unpacked, toy.tree)
    (unpacked / ".git").write_text("gitdir: ../nowhere\n")
    sources = ["", "git", toy.upstream.as_uri(), str(toy.upstream), str(toy.root / "unpacked"), str(unpacked)]
    found = [run(toy, source, f"workspace{number}") for number, source in enumerate(sources)]
    assert len({(item.base_commit, item.head, item.tree) for item in found}) == 1
    assert [item.name for item in found[0].patches] == ["one.patch", "two.patch", "three.patch"]
    assert found[0].patches[-1].tree == found[0].tree
    assert "added_three" in (found[0].path / "src/quants.c").read_text()
    assert (found[0].path / "kept.log").exists()
    assert (found[0].path / "docs/windows.txt").read_bytes() == b"one\r\ntwo\r\n"


def test_a_shallow_clone_a_dirty_clone_and_a_bare_head_elsewhere(toy: Toy) -> None:
    toy.three()
    git(toy.upstream, "commit", "-q", "--allow-empty", "-m", "later")
    clone = toy.root / "clone"
    git(toy.root, "clone", "-q", "--depth=2", toy.upstream.as_uri(), str(clone))
    (clone / "src/quants.c").write_text("changed by its user\n")
    before = sorted((path, path.stat().st_mtime_ns) for path in clone.rglob("*"))
    assert run(toy, str(clone)).head == run(toy, name="other").head
    assert sorted((path, path.stat().st_mtime_ns) for path in clone.rglob("*")) == before


def test_a_clone_without_blobs_is_refused_and_not_filled(toy: Toy) -> None:
    git(toy.upstream, "config", "uploadpack.allowFilter", "true")
    clone = toy.root / "clone"
    git(toy.root, "clone", "-q", "--filter=blob:none", "--no-checkout", toy.upstream.as_uri(), str(clone))
    with pytest.raises(CheckoutError, match="does not hold all files"):
        run(toy, str(clone))
    assert not run(toy, "git").reused


def test_a_different_folder_is_refused(toy: Toy) -> None:
    other = toy.root / "other"
    fill(other, {**toy.tree, "src/quants.c": "int other;\n"})
    with pytest.raises(IntegrityError, match="the pin says"):
        run(toy, str(other))
    assert not toy.context().workspace.checkout("toy").exists()
    with pytest.raises(UsageError):
        run(toy, str(toy.root / "missing"))


def test_git_source_without_the_commit_names_it(toy: Toy) -> None:
    empty = toy.root / "empty"
    repository(empty, {"a": "b\n"})
    with pytest.raises(DownloadError, match="could not fetch"):
        run(toy, empty.as_uri())


def test_hostile_configuration_changes_nothing(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.add_patch("crlf", {"docs/windows.txt": ("two\r\n", "two\r\nthree\r\n")})
    toy.three()
    calm = run(toy, name="calm")
    make_hostile(tmp_path / "home", monkeypatch)
    hostile = run(toy, name="hostile")
    assert (hostile.base_commit, hostile.head, hostile.patches) == (calm.base_commit, calm.head, calm.patches)
    assert (hostile.path / "docs/windows.txt").read_bytes() == b"one\r\ntwo\r\nthree\r\n"


def test_nothing_changed_is_fast_and_writes_nothing(toy: Toy) -> None:
    toy.three()
    first = run(toy)
    stamp = (first.path / ".git/tqforge/stamp.json").stat().st_mtime_ns
    begin = time.monotonic()
    second = run(toy)
    assert time.monotonic() - begin < 0.5
    assert second == replace(first, reused=True)
    assert (first.path / ".git/tqforge/stamp.json").stat().st_mtime_ns == stamp


def test_a_patch_added_and_removed(toy: Toy) -> None:
    toy.three()
    run(toy)
    toy.add_patch("four", {"src/new.c": ("", "int four;\n")})
    assert (run(toy).path / "src/new.c").exists()
    listing = toy.paths.folder / "series"
    listing.write_text(listing.read_text().replace("four.patch\n", "# four.patch\n"))
    assert not (run(toy).path / "src/new.c").exists()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_failed_series_leaves_the_checkout_as_it_was(toy: Toy, number: int) -> None:
    toy.three()
    before = run(toy)
    name = ["one", "two", "three"][number - 1]
    path = toy.paths.folder / f"{name}.patch"
    context = {"one": "line_9;", "two": "line 19", "three": "added_one"}[name]
    path.write_text(
        path.read_text().replace(f" {context}", f" {context}X").replace(f" int {context}", f" int {context}X")
    )
    with pytest.raises(PatchError, match=rf"{name}.patch does not apply: conflict in src/.*, hunk 1 of 1"):
        run(toy)
    assert git(before.path, "rev-parse", "HEAD") == before.head
    assert git(before.path, "status", "--porcelain") == ""
    assert git(before.path, "worktree", "list").count("\n") == 0


def failure(toy: Toy) -> str:
    with pytest.raises(PatchError) as caught:
        run(toy)
    return str(caught.value)


def test_the_class_of_a_failure_is_named(toy: Toy) -> None:
    path = toy.add_patch("gone", {"src/quants.c": ("int line_10;\n", "int ten;\n")})
    good = path.read_text()
    path.write_text(good.replace("src/quants.c", "src/missing.c"))
    assert "target deleted in src/missing.c" in failure(toy)
    path.write_text("\n".join(good.splitlines()[:-4]) + "\n")
    assert "broken" in failure(toy)
    path.write_bytes(good.replace("\n", "\r\n").encode())
    assert "CRLF" in failure(toy)
    path.write_text(good.partition("diff --git")[0])
    assert "broken (it changes no file)" in failure(toy)
    path.write_text(good)
    again = toy.paths.folder / "again.patch"
    again.write_text(good)
    (toy.paths.folder / "series").write_text("gone.patch\nagain.patch\n")
    assert "again.patch does not apply: already upstream" in failure(toy)
    again.write_text(good.replace("/dev/null", "x").replace("a/src/quants.c b/src/quants.c", "a/docs/no b/docs/no"))
    assert "again.patch does not apply" in failure(toy)


def test_no_fuzz(toy: Toy) -> None:
    path = toy.add_patch("fuzzy", {"src/quants.c": ("int line_10;\n", "int ten;\n")})
    path.write_text(path.read_text().replace(" int line_7;", " int line_seven;"))
    assert "conflict in src/quants.c, hunk 1 of 1 (line 7)" in failure(toy)


def test_changes_of_the_user_are_refused_and_kept(toy: Toy) -> None:
    toy.three()
    ready = run(toy)
    changed = ready.path / "src/quants.c"
    changed.write_text("mine\n")
    with pytest.raises(CheckoutError, match=r"src/quants\.c"):
        run(toy)
    assert changed.read_text() == "mine\n"
    git(ready.path, "commit", "-qam", "mine")
    with pytest.raises(CheckoutError, match="did not make"):
        run(toy)
    assert run(toy, discard=True).head == ready.head
    (ready.path / "new.txt").write_text("untracked\n")
    with pytest.raises(CheckoutError, match=r"new\.txt"):
        run(toy)


def test_the_lock_is_checked(toy: Toy) -> None:
    toy.three()
    first = run(toy, write_lock=True)
    entry = lock.read(toy.paths.lock).bases["toy"]
    assert (entry.tree, entry.final) == (toy.base.tree, first.tree)
    assert run(toy).reused
    text = toy.paths.lock.read_text()
    toy.paths.lock.write_text(text.replace(entry.patches[1].tree, "0" * 40))
    with pytest.raises(IntegrityError, match=r"two\.patch"):
        run(toy, name="other")
    toy.paths.lock.write_text(text)
    path = toy.paths.folder / "two.patch"
    path.write_text(path.read_text().replace("Because.", "Because!"))
    with pytest.raises(ConfigError, match=r"entry of two\.patch is out of date"):
        run(toy)


def test_a_killed_move_is_repaired(toy: Toy) -> None:
    toy.three()
    ready = run(toy)
    private = ready.path / ".git/tqforge"
    (private / "moving").write_text(ready.head + "\n")
    (ready.path / ".git/index.lock").write_text("")
    (ready.path / "src/quants.c").unlink()
    (private / ".apply.part").mkdir()
    again = run(toy)
    assert (again.head, again.reused) == (ready.head, False)
    assert run(toy).reused


CHILD = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).with_name("support"))]
from toy import Toy
import pickle
toy = pickle.loads(Path(sys.argv[2]).read_bytes())
from toy import run
print("start", flush=True)
run(toy, name="killed")
"""


def test_kill_9_at_any_moment_is_repaired(toy: Toy) -> None:
    import pickle

    toy.three()
    want = run(toy, name="calm")
    saved = toy.root / "toy.pickle"
    saved.write_bytes(pickle.dumps(toy))
    for delay in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(Path(toys.__file__).parent), str(saved)],
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert child.stdout
        assert child.stdout.readline() == "start\n"
        time.sleep(delay)
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        got = run(toy, name="killed")
        assert (got.head, got.tree) == (want.head, want.tree)
        (got.path / ".git/tqforge/stamp.json").unlink()


def test_bindings_come_from_the_archive(toy: Toy) -> None:
    context = toy.context()
    run(toy)
    assert (ensure_bindings(context.workspace, context.out, toy.base) / "llama_cpp/__init__.py").is_file()
