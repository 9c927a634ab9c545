"""What a library carries for Metal, as metal/README.md quotes it."""

from __future__ import annotations

import re

import pytest
from emulator_tools import METAL, Tree, tool

PATCHES = METAL.parent / "patches/upstream"


@pytest.fixture(scope="module")
def quoted() -> list[int]:
    """Return the figures of metal/README.md: pipelines and bytes of base and series, and the pipelines added."""
    text = (METAL / "README.md").read_text(encoding="utf-8").split("## What the series costs a Mac")[1]
    return [int(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*(?= pipelines| bytes)", text)]


def test_the_readme_quotes_the_tree(tree: Tree, quoted: list[int]) -> None:
    if not tree.has_type("tq3_0"):
        pytest.skip("this tree has no type tq3_0")
    size, pipelines = tool("embedded").measure(tree.metal, tool("sources").kernel_sources(tree.metal))
    assert quoted[2:4] == [pipelines, size], "run metal/tools/embedded.py and correct metal/README.md"


def test_the_readme_quotes_what_the_patches_add(quoted: list[int]) -> None:
    added = sum(
        len(re.findall(r"^\+.*host_name\(", patch.read_text(encoding="utf-8"), re.M))
        for patch in PATCHES.glob("metal-*.patch")
    )
    assert added == quoted[4] == quoted[2] - quoted[0]


def test_a_source_is_embedded_with_its_headers(tree: Tree) -> None:
    text = tool("embedded").text(tree.metal, "quantize")
    assert "GGML_TABLE_BEGIN" in text
    assert "struct ggml_metal_kargs_" in text or "ggml_metal_kargs_" in text
    assert '#include "dequantize.h"' not in text
