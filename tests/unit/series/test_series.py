"""The series, the lock and the data files: what is invalid is refused with one message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tqforge import resources
from tqforge.base import snapshots
from tqforge.core.values import AppliedPatch
from tqforge.errors import ConfigError, IntegrityError
from tqforge.pr import rules
from tqforge.series import lock, series
from tqforge.series.lint.subject import load_settings
from tqforge.series.lock import LockedBase, LockedPatch, SeriesPaths

ID, OTHER, SHA = "a" * 40, "b" * 40, "c" * 64

INVALID_SERIES = {
    "a.patch\na.patch\n": "line 2: 'a.patch' is listed twice",
    "# comment\n\nreadme.txt\n": "line 3: 'readme.txt' is not a patch file name",
    "../a.patch\n": "is not a patch file name",
    "sub/a.patch\n": "is not a patch file name",
    ".hidden.patch\n": "is not a patch file name",
    "a b.patch\n": "is not a patch file name",
    "a\\b.patch\n": "is not a patch file name",
}


@pytest.mark.parametrize("text", INVALID_SERIES)
def test_invalid_series(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        series.parse_names(text, "series")
    assert INVALID_SERIES[text] in caught.value.what
    assert caught.value.remedy


def test_comments_and_blank_lines() -> None:
    assert series.parse_names("# one\n\n a.patch # first\nb.patch\n#c.patch\n", "x") == ["a.patch", "b.patch"]


def test_load(tmp_path: Path) -> None:
    assert series.load(tmp_path).patches == ()
    (tmp_path / "series").write_text("a.patch\nb.patch\n")
    (tmp_path / "a.patch").write_bytes(b"A")
    with pytest.raises(ConfigError, match=r"'b\.patch' is listed in the series but cannot be read"):
        series.load(tmp_path)
    (tmp_path / "b.patch").write_bytes(b"B")
    loaded = series.load(tmp_path)
    assert [patch.title for patch in loaded.patches] == ["a", "b"]
    assert loaded.find("a.patch") is loaded.find("a") is loaded.patches[0]
    with pytest.raises(ConfigError, match="has no patch 'c'"):
        loaded.find("c")
    (tmp_path / "series").write_text("b.patch\na.patch\n")
    assert series.load(tmp_path).sha256 != loaded.sha256
    (tmp_path / "series").write_bytes(b"\xff.patch\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        series.load(tmp_path)


INVALID_LOCKS = {
    "not toml": "cannot be read",
    "schema = 2\n": "schema",
    "schema = 1\n[bases.x]\ntree = 'zz'\nfinal = 'zz'\n": "bases.x.tree",
    f"schema = 1\n[bases.x]\ntree = '{ID}'\n": "bases.x.final",
    f"schema = 1\n[bases.x]\ntree = '{ID}'\nfinal = '{ID}'\nextra = 1\n": "bases.x.extra",
    f"schema = 1\n[bases.x]\ntree = '{ID}'\nfinal = '{ID}'\n[[bases.x.patches]]\nname = 'a'\n": "bases.x.patches.0",
}


@pytest.mark.parametrize("text", INVALID_LOCKS)
def test_invalid_locks(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tqforge.lock"
    path.write_text(text)
    with pytest.raises(ConfigError, match=INVALID_LOCKS[text]):
        lock.read(path)


def applied(name: str, tree: str = ID, sha256: str = SHA) -> AppliedPatch:
    return AppliedPatch(name=name, sha256=sha256, patch_id=ID, commit=ID, tree=tree)


def test_record_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "tqforge.lock"
    assert lock.read(path).bases == {}
    assert lock.record(path, "b", ID, [applied("one.patch"), applied("two.patch", OTHER)])
    assert not lock.record(path, "b", ID, [applied("one.patch"), applied("two.patch", OTHER)])
    assert lock.record(path, "a", ID, [])
    read = lock.read(path)
    assert (read.bases["b"].final, read.bases["a"].final) == (OTHER, ID)
    assert lock.render(read) == path.read_text()


def test_what_the_lock_holds_a_series_to(tmp_path: Path) -> None:
    (tmp_path / "series").write_text("a.patch\nb.patch\n")
    for name in ("a", "b"):
        (tmp_path / f"{name}.patch").write_text(name)
    loaded = series.load(tmp_path)
    good = tuple(LockedPatch(name=p.name, sha256=p.sha256, patch_id=ID, tree=ID) for p in loaded.patches)
    lock.check_series(LockedBase(tree=ID, final=ID, patches=good), loaded, tmp_path)
    for patches, message in (
        (good[:1], "different patches"),
        (good[::-1], "another order"),
        ((good[0], good[1].model_copy(update={"sha256": SHA})), r"entry of b\.patch is out of date"),
    ):
        with pytest.raises(ConfigError, match=message):
            lock.check_series(LockedBase(tree=ID, final=ID, patches=patches), loaded, tmp_path)
    with pytest.raises(IntegrityError, match=rf"After b\.patch the tree is {OTHER}"):
        lock.check_trees(
            LockedBase(tree=ID, final=ID, patches=good), ID, [applied("a.patch"), applied("b.patch", OTHER)], tmp_path
        )
    with pytest.raises(IntegrityError, match=f"for a base with tree {ID}, this base has {OTHER}") as caught:
        lock.check_trees(LockedBase(tree=ID, final=ID, patches=good), OTHER, [], tmp_path)
    assert "--write-lock" in caught.value.remedy


def test_the_shipped_lock_belongs_to_the_shipped_series() -> None:
    paths = SeriesPaths.of("upstream")
    entry = lock.read(paths.lock).bases["upstream"]
    lock.check_series(entry, series.load(paths.folder), paths.lock)


@pytest.mark.parametrize("loader", [load_settings, rules.load, snapshots.pins])
@pytest.mark.parametrize("text", ["[", "schema = 3\n", "schema = 1\nother = 2\n", None])
def test_invalid_data_files(tmp_path: Path, loader: object, text: str | None) -> None:
    path = tmp_path / "data.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        loader(path)  # type: ignore[operator]
    assert caught.value.where == str(path)


def test_the_shipped_data_files_are_valid() -> None:
    folder = resources.third_party()
    assert load_settings(folder / "lint.toml").scopes
    assert rules.load(folder / "upstream_rules.toml").rules
    assert snapshots.pins()
