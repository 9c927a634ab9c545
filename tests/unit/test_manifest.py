from __future__ import annotations

from pathlib import Path

import pytest

from tqforge import resources
from tqforge.domain.manifest import load_base, load_models
from tqforge.domain.model import Pair
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema = 2\n", "schema"),
        ("schema = 1\ndefault = 'x'\nbases = 3\n", "bases"),
        ("not toml", "cannot be read"),
        ("schema = 1\ndefault = 'x'\n[bases.x]\ncommit = 'zz'\n", "bases.x"),
    ],
)
def test_invalid_manifests(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bases.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_base(path=path)


def test_pairs() -> None:
    assert str(Pair.parse("q8_0/tq3_0")) == "q8_0/tq3_0"
    assert Pair.parse("tq3_0") == Pair("tq3_0", "tq3_0")
    for bad in ("", "a/b/c", "/x"):
        with pytest.raises(ValueError, match="K/V pair"):
            Pair.parse(bad)
