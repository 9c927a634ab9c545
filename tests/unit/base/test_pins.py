from __future__ import annotations

from pathlib import Path

import pytest

from tqforge import resources
from tqforge.base.pins import load_base, load_models
from tqforge.errors import ConfigError, UsageError


def test_default_base_is_pinned_by_tree_and_sha256() -> None:
    base = load_base()
    assert base.name == "upstream"
    assert len(base.tree) == 40
    assert len(base.archive.sha256) == 64


def test_unknown_base_names_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        load_base("nightly")
    assert "upstream" in caught.value.remedy


def test_every_licence_file_exists() -> None:
    text = (resources.third_party() / "bases.toml").read_text(encoding="utf-8")
    files = [line.split('"')[1] for line in text.splitlines() if line.startswith("license_file")]
    assert files
    assert all((resources.third_party() / name).is_file() for name in files)


def test_default_model_has_a_wheel() -> None:
    default, models = load_models()
    assert models[default].wheel is not None


GOOD = f"""schema = 1
default = "x"
[bases.x]
title = "x"
repository = "https://example.org/x"
commit = "{"a" * 40}"
tree = "{"b" * 40}"
license = "MIT"
license_file = "x.txt"
[bases.x.archive]
project = "x"
version = "1"
filename = "x-1.tar.gz"
sha256 = "{"c" * 64}"
source = "vendor/x"
bindings = "x"
license = "MIT"
license_file = "x.txt"
"""

#: What is changed in the good manifest, and what its one message names.
INVALID: dict[str, tuple[str, str, str]] = {
    "not toml": (GOOD, "not toml", "cannot be read"),
    "another schema": ("schema = 1", "schema = 2", "schema"),
    "no table": (GOOD[GOOD.index("[bases.x]") :], "bases = 3\n", "bases"),
    "short commit": ("a" * 40, "a" * 12, r"bases\.x\.commit"),
    "no tree": (f'tree = "{"b" * 40}"\n', "", r"bases\.x\.tree"),
    "tree of big letters": ("b" * 40, "B" * 40, r"bases\.x\.tree"),
    "sha1 as sha256": ("c" * 64, "c" * 40, r"bases\.x\.archive\.sha256"),
    "no archive": (GOOD[GOOD.index("[bases.x.archive]") :], "", r"bases\.x\.archive"),
    "unknown key": ('title = "x"', 'title = "x"\nnotes = "y"', r"bases\.x\.notes"),
    "twice the same key": ('title = "x"', 'title = "x"\ntitle = "y"', "cannot be read"),
    "unknown default": ('default = "x"', 'default = "y"', "y"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_manifests_give_one_message(tmp_path: Path, name: str) -> None:
    old, new, message = INVALID[name]
    assert old in GOOD
    path = tmp_path / "bases.toml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises((ConfigError, UsageError), match=message) as caught:
        load_base(path=path)
    assert "\n" not in caught.value.what.rstrip()


def test_the_good_manifest_is_good(tmp_path: Path) -> None:
    path = tmp_path / "bases.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert load_base(path=path).archive.sha256 == "c" * 64
