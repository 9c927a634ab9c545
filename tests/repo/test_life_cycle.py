"""Export, and a conflict that is resolved by hand, on a toy upstream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hostile import make_hostile
from toy import Toy, commit, git, sdist

from tqforge.adapters.git import Repository
from tqforge.commands.patch import apply, export, new
from tqforge.errors import CheckoutError, ConfigError, PatchError, UsageError
from tqforge.series import export as exporting
from tqforge.series import series
from tqforge.series.export import Difference


@dataclass
class Bench:
    """The commands on the toy's base."""

    toy: Toy

    def __post_init__(self) -> None:
        self.ctx = self.toy.context()
        self.folder = self.toy.paths.folder
        self.checkout = self.ctx.workspace.checkout("toy")

    def apply(self, **options: object) -> int:
        options.setdefault("source", str(self.toy.archive))
        return apply.run(self.ctx, patches=self.folder, **options)  # type: ignore[arg-type]

    def check(self) -> int:
        return export.check(self.ctx, patches=self.folder)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}

    def differences(self) -> dict[str, Difference]:
        repository = Repository(self.checkout)
        head = repository.resolve("HEAD")
        first = exporting.base_of(repository, head, self.toy.base.tree)
        exported = exporting.export_commits(repository, first, head)
        return exporting.compare(series.load(self.folder), exported)


@pytest.fixture
def bench(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for module in (apply, export):
        monkeypatch.setattr(module, "load_base", lambda name=None: toy.base)
    toy.three()
    return Bench(toy)


def test_export_gives_the_bytes_on_disk(bench: Bench) -> None:
    bench.apply(write_lock=True)
    before = bench.files()
    assert bench.check() == 0
    assert export.run(bench.ctx, patches=bench.folder) == 0
    assert bench.files() == before


def test_export_under_a_hostile_configuration(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.apply(write_lock=True)
    before = bench.files()
    make_hostile(tmp_path / "home", monkeypatch)
    for key, value in (("diff.noprefix", "true"), ("diff.context", "1"), ("format.attach", "x")):
        git(bench.checkout, "config", key, value)
    assert bench.check() == 0
    export.run(bench.ctx, patches=bench.folder)
    assert bench.files() == before


def test_check_names_what_differs(bench: Bench) -> None:
    bench.apply(write_lock=True)
    path = bench.folder / "two.patch"
    path.write_text(path.read_text().replace("@@ -17,7 +17,7 @@", "@@ -18,7 +18,7 @@"))
    bench.apply(write_lock=True)
    assert bench.differences()["two.patch"] is Difference.SHIFTED
    assert bench.check() == 1
    path.write_text(path.read_text().replace("Because.", "Because  .  \n\n\n\nX"))
    bench.apply(write_lock=True)
    assert bench.differences()["two.patch"] is Difference.MESSAGE
    bench.folder.joinpath("series").write_text("")
    with pytest.raises(ConfigError, match="no patch to check"):
        bench.check()


def test_keep_shifted_leaves_alone_what_only_shifted(bench: Bench) -> None:
    bench.apply(write_lock=True)
    before = bench.files()
    git(bench.checkout, "checkout", "-q", "HEAD~2")
    source = bench.checkout / "src/quants.c"
    source.write_text(source.read_text().replace("int line_1;\n", "int line_0;\nint line_1;\n"))
    git(bench.checkout, "commit", "-q", "--amend", "-a", "--no-edit")
    git(bench.checkout, "cherry-pick", "series~1", "series")
    git(bench.checkout, "checkout", "-q", "-B", "series")
    assert [str(kind) for kind in bench.differences().values()] == ["changed", "same", "shifted"]
    export.run(bench.ctx, patches=bench.folder, keep_shifted=True)
    after = bench.files()
    assert {name for name in after if after[name] != before[name]} == {"one.patch", "tqforge.lock"}
    assert bench.check() == 1
    export.run(bench.ctx, patches=bench.folder)
    assert bench.files()["three.patch"] != before["three.patch"]
    assert bench.check() == 0


def test_a_change_of_white_space_is_a_change(bench: Bench) -> None:
    """`git patch-id` ignores white space: by it alone, the export would take the commit for the old patch."""
    bench.apply(write_lock=True)
    source = bench.checkout / "src/cache.cpp"
    source.write_text(source.read_text().replace("cache line twenty\n", "cache line twen ty\n"))
    git(bench.checkout, "commit", "-q", "-a", "--fixup=:/Patch-Name: two")
    git(bench.checkout, "-c", "sequence.editor=true", "rebase", "-q", "-i", "--autosquash", "refs/tqforge/base")
    assert [str(kind) for kind in bench.differences().values()] == ["same", "changed", "same"]
    export.run(bench.ctx, patches=bench.folder, keep_shifted=True)
    assert "cache line twen ty" in (bench.folder / "two.patch").read_text()
    assert "cache line twen ty" in source.read_text()


def test_export_refuses_what_is_in_no_commit(bench: Bench) -> None:
    bench.apply()
    (bench.checkout / "src/quants.c").write_text("mine\n")
    with pytest.raises(CheckoutError, match="uncommitted changes"):
        export.run(bench.ctx, patches=bench.folder)
    git(bench.checkout, "commit", "-qam", "no trailers")
    with pytest.raises(ConfigError, match="no valid Patch-Name"):
        export.run(bench.ctx, patches=bench.folder)


def test_export_from_another_repository(bench: Bench) -> None:
    bench.apply(write_lock=True)
    before = bench.files()
    for name in before:
        if name != "tqforge.lock":
            (bench.folder / name).unlink()
    bench.folder.joinpath("series").write_text("# kept comment\n\n")
    export.run(bench.ctx, patches=bench.folder, repository=bench.toy.root / "work")
    assert bench.files() == before | {"series": b"# kept comment\n\none.patch\ntwo.patch\nthree.patch\n"}


def break_two(bench: Bench) -> Path:
    """The second patch was made on another text of its line."""
    path = bench.folder / "two.patch"
    path.write_text(path.read_text().replace("-cache line 20\n", "-cache line 20 of old\n"))
    return path


def conflict(bench: Bench) -> Path:
    before = git(bench.checkout, "rev-parse", "HEAD")
    with pytest.raises(
        PatchError, match=r"two\.patch does not apply: conflict in src/cache\.cpp, hunk 1 of 1"
    ) as caught:
        bench.apply()
    work = bench.checkout.with_name("toy-resolve")
    for word in (str(work), "--continue", "--skip", "--abort", "add -A"):
        assert word in caught.value.remedy
    assert git(bench.checkout, "rev-parse", "HEAD") == before
    assert git(bench.checkout, "status", "--porcelain") == ""
    return work


def test_resolve_and_continue(bench: Bench) -> None:
    bench.apply()
    break_two(bench)
    work = conflict(bench)
    assert list(work.rglob("*.rej"))
    with pytest.raises(PatchError, match="not resolved yet"):
        apply.continue_(bench.ctx, patches=bench.folder)
    for path in work.rglob("*.rej"):
        path.unlink()
    file = work / "src/cache.cpp"
    file.write_text(file.read_text().replace("cache line 20\n", "cache line twenty by hand\n"))
    git(work, "add", "-A")
    assert apply.continue_(bench.ctx, patches=bench.folder) == 0
    assert "twenty by hand" in (bench.checkout / "src/cache.cpp").read_text()
    assert "added_three" in (bench.checkout / "src/quants.c").read_text()
    assert "twenty by hand" in (bench.folder / "two.patch").read_text()
    assert bench.check() == 0
    assert not work.exists()


def test_resolve_and_skip(bench: Bench) -> None:
    bench.apply()
    break_two(bench)
    conflict(bench)
    assert apply.continue_(bench.ctx, patches=bench.folder, skip=True) == 0
    assert not (bench.folder / "two.patch").exists()
    assert bench.check() == 0


def test_resolve_and_abort(bench: Bench) -> None:
    bench.apply()
    break_two(bench)
    before = bench.files()
    work = conflict(bench)
    assert apply.abort(bench.ctx) == 0
    assert not work.exists()
    assert bench.files() == before
    with pytest.raises(UsageError, match="no conflict"):
        apply.continue_(bench.ctx, patches=bench.folder)


def test_new_makes_a_patch_of_the_changes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new, "load_base", lambda name=None: bench.toy.base)
    bench.apply(write_lock=True)
    values = {"Why": "the toy needs a fourth", "Upstream-Status": "Pending", "Guard": "test-toy four"}
    with pytest.raises(CheckoutError, match="no changes"):
        new.run(bench.ctx, "four", subject="toy : four", body="", values=values)
    (bench.checkout / "src/four.c").write_text("int four;\n")
    with pytest.raises(UsageError, match="must say where"):
        new.run(bench.ctx, "four", subject="s", body="", values={**values, "Upstream-Status": "Submitted"})
    assert new.run(bench.ctx, "four", subject="toy : four", body="A fourth.", values=values) == 0
    assert export.run(bench.ctx, patches=bench.folder) == 0
    text = (bench.folder / "four.patch").read_text()
    assert "From: tqforge <tqforge@localhost>\nDate: Thu, 1 Oct 2026 00:00:00 +0000\n" in text
    assert "\nA fourth.\n\nPatch-Name: four\nWhy: the toy needs a fourth\n" in text
    assert bench.check() == 0


def rebase(bench: Bench, changes: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin a newer upstream; the series is still the one made for the old."""
    old = bench.toy
    tree = {**old.tree, **changes}
    commit_id, tree_id = commit(old.upstream, tree, "newer")
    digest = sdist(old.archive, tree)
    new = replace(old.base, commit=commit_id, tree=tree_id, archive=replace(old.base.archive, sha256=digest))
    for module in (apply, export):
        monkeypatch.setattr(module, "load_base", lambda name=None: new)


def test_port_to_a_newer_base_by_three_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.apply()
    cache = bench.toy.tree["src/cache.cpp"].replace("cache line 18\n", "cache line eighteen\n")
    rebase(bench, {"src/cache.cpp": cache}, monkeypatch)
    with pytest.raises(PatchError, match=r"two\.patch does not apply: conflict") as caught:
        bench.apply()
    assert "review the 3-way merge" in caught.value.remedy
    assert apply.continue_(bench.ctx, patches=bench.folder) == 0
    assert "cache line eighteen\n cache line 19\n-cache line 20\n" in (bench.folder / "two.patch").read_text()
    assert bench.check() == 0


def test_a_resolution_that_drops_upstream_lines_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.apply()
    cache = bench.toy.tree["src/cache.cpp"].replace("cache line 20\n", "cache line 20 of theirs\ncache line new\n")
    rebase(bench, {"src/cache.cpp": cache}, monkeypatch)
    with pytest.raises(PatchError, match="hunk 1 of 1"):
        bench.apply()
    work = bench.checkout.with_name("toy-resolve")
    file = work / "src/cache.cpp"
    before, _, rest = file.read_text().partition("<<<<<<<")
    file.write_text(before + "cache line twenty\n" + rest.partition(">>>>>>>")[2].partition("\n")[2])
    git(work, "add", "-A")
    assert apply.continue_(bench.ctx, patches=bench.folder) == 0
    said = capsys.readouterr().err
    assert "two.patch now removes 2 lines that it did not remove before" in said
    assert "cache line new" in said
