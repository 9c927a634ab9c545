"""Count with callgrind how many instructions a flash attention kernel executes per KV value, on the fast variant.

The count includes the kernel's own code and everything inlined into it, but not the emulation of SIMD-group
collectives, which no GPU runs. It approximates the work of a kernel, not its time on a GPU.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from emulator_tools import Emulator, Tree, cache
from mutants import Change

from tqforge.adapters import cmake, toolchain
from tqforge.build import cmake_plan
from tqforge.build.cmake_plan import Options
from tqforge.core import emulator as names

HEAD, ENTRIES = 128, 4096
VALUES = 2 * HEAD * ENTRIES  # K and V

_NAME = re.compile(r"\((\d+)\)(?: (.*))?")
_EMULATED = re.compile(r"lambda|UlPPv|__invoke")
_OTHER = re.compile(r"vec_reduce|ext_pad|ext_blk")

_UNPACK = "    reg = (type4) tq3_0_values((qs[0] | (qs[1] << 8)) >> (4*(il & 1)), xb->d);\n"
#: Keys and values rotated back when they are read, as one would first write it: the whole inverse for every 4 values.
NAIVE = (
    Change(
        "kernels/dequantize.h",
        f"    device const uint8_t * qs = xb->qs + ((3*il) >> 1);\n\n{_UNPACK}",
        "    float4 v[8];\n"
        "    for (short i = 0; i < 8; ++i) {\n"
        "        device const uint8_t * qs = xb->qs + ((3*i) >> 1);\n"
        "        v[i] = tq3_0_values((qs[0] | (qs[1] << 8)) >> (4*(i & 1)), xb->d);\n"
        "    }\n"
        "    tq3_0_wht<8>(v);\n"
        "    reg = (type4) (v[il]*tq3_0_signs(il)*TQ3_0_RSQRT_QK);\n",
        ("fa_tq3_0",),
    ),
    Change("kernels/fa_vec_common.metal", "is_same<kd4_t, block_tq3_0>::value", "false"),
    Change("kernels/fa_vec_common.metal", "is_same<vd4_t, block_tq3_0>::value", "false"),
)
NAIVE_ONLY = f"vec_tq3_0_dk{HEAD}_dv{HEAD}|flash_attn_ext_(pad|vec_reduce)"


def parse(text: str) -> Counter[tuple[str, str]]:
    """Return the self cost by (object, function) from a callgrind file."""
    names: dict[tuple[str, str], str] = {}
    cost: Counter[tuple[str, str]] = Counter()
    where = {"ob": "", "fn": ""}
    skip = False

    def named(kind: str, word: str) -> str:
        found = _NAME.match(word)
        assert found, word
        if found[2] is not None:
            names[kind, found[1]] = found[2]
        return names[kind, found[1]]

    for line in text.splitlines():
        key, _, word = line.partition("=")
        if key in ("ob", "fn"):
            where[key] = named(key, word)
        elif key in ("cob", "cfn"):
            named(key[1:], word)
        elif key == "calls":
            skip = True
        elif line[:1] in "0123456789+-*" and line:
            if not skip:
                cost[where["ob"], where["fn"]] += int(line.split()[1])
            skip = False
    return cost


def of_kernel(cost: Counter[tuple[str, str]]) -> int:
    """Return the number of instructions inside the attention kernel."""
    return sum(
        count
        for (library, function), count in cost.items()
        if "-fa_" in library and not _OTHER.search(function) and not _EMULATED.search(function)
    )


def portable(tree: Tree) -> Path:
    """Build the tree's ggml without instructions that valgrind lacks."""
    tools = toolchain.tools()
    options = Options(native=False, ccache=tools.ccache.path if tools.ccache else None)
    plan = cmake_plan.make(toolchain.host(), options, cmake_plan.Version(tree="0" * 12))
    made = cmake.BuildTree(
        source=tree.root,
        folder=cache() / f"portable-{hashlib.sha256(str(tree.root).encode()).hexdigest()[:12]}",
        tools=tools,
        environment=dict(cmake_plan.environment()),
    )
    made.configure([*plan.arguments, *plan.launchers], fresh=False)
    made.build(["ggml"], plan.jobs, lambda _: None)
    return made.folder / "bin"


def stripped(emulator: Emulator, folder: Path) -> Emulator:
    """Copy the emulator without debug information, which valgrind may fail to read. Function names stay."""
    folder.mkdir()
    for built in [*emulator.folder.glob("lib*.so"), emulator.folder / names.DIRECT]:
        copy = Path(shutil.copy(built, folder))
        subprocess.run(["strip", "--strip-debug", copy], check=True)
    return Emulator(emulator.tree, folder, emulator.build)


def per_value(emulator: Emulator, libraries: Path, pair: str, folder: Path) -> float:
    """Return instructions per KV value for one head and one query with the tuned kernel."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("no valgrind on PATH (Debian, Ubuntu: apt-get install valgrind)")
    out = folder / f"callgrind.{pair.replace('/', '-')}"
    words: list[str | Path] = [valgrind, "--tool=callgrind", f"--callgrind-out-file={out}"]
    words += [emulator.folder / names.DIRECT, "--pair", pair, "--heads", str(HEAD), "--suite", "long"]
    report = emulator.run(words, "fast", {"LD_LIBRARY_PATH": str(libraries)})
    assert report.code == 0, report.describe()
    assert any("_vec_" in kernel and f"dk{HEAD}" in kernel for kernel in report.dispatches), report.dispatches
    count = of_kernel(parse(out.read_text(encoding="utf-8", errors="replace")))
    assert count > 0, "no instruction of a kernel was counted"
    return count / VALUES
