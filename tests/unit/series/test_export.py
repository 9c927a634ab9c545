"""How an exported patch differs from the file on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from lint_series import GOOD, ID

from tqforge.errors import ConfigError
from tqforge.series import export
from tqforge.series.export import Difference, Exported
from tqforge.series.lock import SeriesPaths
from tqforge.series.series import Patch, Series

SHIFTED = GOOD.replace("@@ -1,3 +1,4 @@", "@@ -11,3 +11,4 @@ int f()").replace(ID + "..", "2" * 40 + "..")
MOVED_FILE = GOOD.replace("ggml/src/ggml.c", "ggml/src/other.c")

CASES = {
    "the same": (GOOD, GOOD, Difference.SAME),
    "positions and ids": (SHIFTED, GOOD, Difference.SHIFTED),
    "subject": (GOOD.replace("add a thing", "add one thing"), GOOD, Difference.MESSAGE),
    "body": (GOOD.replace("Because.", "Because"), GOOD, Difference.MESSAGE),
    "date": (GOOD.replace("Thu, 1 Oct", "Fri, 2 Oct"), GOOD, Difference.MESSAGE),
    "message and position": (SHIFTED.replace("Because.", "Because"), GOOD, Difference.MESSAGE),
    "an added line": (GOOD.replace("+int thing;", "+int things;"), GOOD, Difference.CHANGED),
    "white space": (GOOD.replace("+int thing;", "+int  thing;"), GOOD, Difference.CHANGED),
    "a blank at the end": (GOOD.replace("+int thing;", "+int thing; "), GOOD, Difference.CHANGED),
    "a context line": (GOOD.replace(" int c;", " int d;"), GOOD, Difference.CHANGED),
    "the file": (MOVED_FILE, GOOD, Difference.CHANGED),
    "the mode": (GOOD.replace(ID, "old mode 100644\nnew mode 100755\nindex " + ID, 2), GOOD, Difference.CHANGED),
    "change and message": (GOOD.replace("thing", "things"), GOOD, Difference.CHANGED),
    "a malformed file": ("no patch\n", GOOD, Difference.CHANGED),
}


def series(**texts: str) -> Series:
    names = {name.replace("_", "-") + ".patch": text for name, text in texts.items()}
    return Series(Path("s"), tuple(Patch(name, Path("s", name), text.encode()) for name, text in names.items()))


def exported(name: str, text: str = GOOD) -> Exported:
    return Exported(f"{name}.patch", text.encode(), "c" * 40)


@pytest.mark.parametrize("name", CASES)
def test_differences(name: str) -> None:
    old, new, expected = CASES[name]
    assert old != new or expected is Difference.SAME
    assert export.compare(series(a=old), [exported("a", new)]) == {"a.patch": expected}
    if "malformed" not in name:
        assert export.compare(series(a=new), [exported("a", old)]) == {"a.patch": expected}


def test_new_and_removed_patches_in_the_order_of_the_commits() -> None:
    found = export.compare(series(gone=GOOD, b=GOOD), [exported("new"), exported("b")])
    assert list(found.items()) == [
        ("new.patch", Difference.NEW),
        ("b.patch", Difference.SAME),
        ("gone.patch", Difference.REMOVED),
    ]


def write(folder: Path, old: dict[str, str], new: dict[str, str], *, keep_shifted: bool = False) -> list[str]:
    for name, text in old.items():
        (folder / f"{name}.patch").write_text(text)
    (folder / "series").write_text("# comment\n\n" + "".join(f"{name}.patch\n" for name in old))
    items = [exported(name, text) for name, text in new.items()]
    differences = export.compare(series(**old), items)
    return export._write_series(folder, items, differences, keep_shifted=keep_shifted)


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    old = {"a": GOOD, "b": SHIFTED, "c": GOOD, "gone": GOOD}
    new = {"a": GOOD, "b": GOOD, "c": GOOD.replace("thing", "things")}
    assert write(tmp_path, old, new) == ["b.patch", "c.patch", "series", "gone.patch"]
    assert (tmp_path / "b.patch").read_text() == GOOD
    assert not (tmp_path / "gone.patch").exists()
    assert (tmp_path / "series").read_text() == "# comment\n\na.patch\nb.patch\nc.patch\n"


def test_keep_shifted_leaves_shifted_patches_alone(tmp_path: Path) -> None:
    old = {"a": SHIFTED, "b": SHIFTED}
    assert write(tmp_path, old, {"a": GOOD, "b": GOOD.replace("+int thing;", "+int  thing;")}, keep_shifted=True) == [
        "b.patch"
    ]
    assert (tmp_path / "a.patch").read_text() == SHIFTED


def test_a_new_order_rewrites_only_the_series(tmp_path: Path) -> None:
    assert write(tmp_path, {"a": GOOD, "b": GOOD}, {"b": GOOD, "a": GOOD}) == ["series"]
    assert (tmp_path / "series").read_text() == "# comment\n\nb.patch\na.patch\n"


@pytest.mark.parametrize(
    ("name", "valid"),
    [("ggml-thing", True), ("ggml thing", False), ("ggml/thing", False), ("", False)],
)
def test_the_name_of_a_commit(name: str, valid: bool) -> None:
    text = GOOD.replace("Patch-Name: ggml-thing\n", f"Patch-Name: {name}\n" if name else "")
    if valid:
        assert export._named(text.encode(), "c" * 40).name == "ggml-thing.patch"
        return
    with pytest.raises(ConfigError, match="has no valid Patch-Name: trailer") as caught:
        export._named(text.encode(), "c" * 40)
    assert "ggml : add a thing" in caught.value.what


def test_a_series_inside_an_installed_package_is_known() -> None:
    folder = Path("/site-packages/tqforge/_data/patches/upstream")
    assert SeriesPaths(folder, folder / "x.lock").installed
    assert not SeriesPaths.of("upstream", Path("/home/me/patches/upstream")).installed
