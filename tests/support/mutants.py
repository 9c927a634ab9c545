"""An emulator with one change in the tree's Metal sources. Only what the change reaches is compiled again."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from emulator_tools import Emulator, tool

from tqforge.core import emulator as names

# what the cases below run: the smallest set of kernels
ONLY = "dk64_dv64|(get_rows|set_rows|cpy)_.*(q4_0|q8_0|tq3_0)|flash_attn_ext_(kv|pad|blk|vec_reduce)"


@dataclass(frozen=True)
class Change:
    """Replaces the first `old` in a file of ggml-metal by `new`. `sources` are the kernel files affected."""

    file: str
    old: str
    new: str
    sources: tuple[str, ...] = ()


def _applied(emulator: Emulator, changes: tuple[Change, ...], folder: Path) -> Path:
    """Return a copy of ggml-metal with the changes."""
    copy = folder / "ggml-metal"
    shutil.copytree(emulator.tree.metal, copy)
    for change in changes:
        target = copy / change.file
        text = target.read_text(encoding="utf-8")
        assert change.old in text, f"{change.file} no longer holds: {change.old}"
        target.write_text(text.replace(change.old, change.new, 1), encoding="utf-8")
    return copy


def _compile(emulator: Emulator, source: Path, replace: dict[str, str], output: Path) -> None:
    """Repeat the compile command of `source`, with other folders and another output."""
    commands = json.loads((emulator.build / "compile_commands.json").read_text())
    entry = next(c for c in commands if Path(c["file"]) == source)
    words = shlex.split(entry["command"])
    if "ccache" in words[0]:
        words = words[1:]
    cut = words.index("-o")
    words = words[:cut] + words[cut + 2 :]
    for old, new in replace.items():
        words = [w.replace(old, new) for w in words]
    subprocess.run([*words, "-o", output], cwd=entry["directory"], check=True)


def _link(
    emulator: Emulator, compiler: str, objects: list[Path], name: str, folder: Path, libraries: list[str]
) -> None:
    target = folder / name
    target.unlink(missing_ok=True)
    options = ["-shared", f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN", f"-L{emulator.folder}", *libraries]
    subprocess.run([compiler, *objects, *options, "-o", target], check=True)


def mutant(
    emulator: Emulator,
    compiler: str,
    change: Change,
    folder: Path,
    *,
    also: tuple[Change, ...] = (),
    variant: str = "check",
    only: str = ONLY,
) -> Emulator:
    """Build the emulator with the changes in `folder`, recompiling one variant."""
    metal = _applied(emulator, (change, *also), folder)
    for built in [*emulator.folder.glob("lib*.so"), emulator.folder / names.DIRECT]:
        os.link(built, folder / built.name) if built.stat().st_dev == folder.stat().st_dev else shutil.copy2(
            built, folder
        )
    generated = emulator.build / "generated"
    if change.file.endswith(".m"):
        include = folder / "generated"
        include.mkdir()
        text = tool("extract").extract((metal / change.file).read_text(encoding="utf-8"), change.file)
        (include / "supports_op.inc").write_text(text, encoding="utf-8")
        _compile(emulator, _source("backend/supports.cpp"), {str(generated): str(include)}, folder / "supports.o")
        _link(
            emulator,
            compiler,
            [folder / "supports.o"],
            "libmetal-emulator-supports.so",
            folder,
            ["-lmetal-emulator-runtime"],
        )
        return Emulator(emulator.tree, folder, emulator.build)
    tool("rewrite").rewrite_tree(metal / "kernels", folder / "generated", only, variant == "fast")
    for source in change.sources:
        before, after = str(generated / variant), str(folder / "generated")
        _compile(emulator, generated / variant / f"{source}.metal", {before: after}, folder / f"{source}.o")
        _link(
            emulator,
            compiler,
            [folder / f"{source}.o"],
            f"libkernels-{variant}-{source}.so",
            folder,
            ["-lmetal-emulator-runtime", "-lm"],
        )
    return Emulator(emulator.tree, folder, emulator.build)


def _source(name: str) -> Path:
    return Path(__file__).parents[2] / "metal" / name
