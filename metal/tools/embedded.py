"""How much Metal source a library carries: what CMakeLists.txt of ggml-metal embeds, and how many pipelines it names.

A Mac compiles all of it when the device is first used, the kernel files side by side. Each of them is embedded with the
headers it includes, with ggml-common.h and ggml-metal-impl.h: a line more in dequantize.h is a line more in every one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

_SHARED = ("common.h", "dequantize.h", "quantize.h", "fa_common.metal", "fa_vec_common.metal")
_DROPPED = re.compile(
    r'#include "(?:common\.h|dequantize\.h|quantize\.h|fa_common\.metal|fa_vec_common\.metal)"|#pragma once'
)
_INLINED = {"__embed_ggml-common.h__": "../ggml-common.h", '#include "ggml-metal-impl.h"': "ggml-metal-impl.h"}
_PIPELINE = re.compile(r'\[\[host_name\("([^"]+)"\s*\)\]\]')


def text(metal: Path, name: str) -> str:
    """Return the text that CMakeLists.txt embeds for one kernel source."""
    kernels = metal / "kernels"
    source = (kernels / f"{name}.metal").read_text(encoding="utf-8")
    wanted = [shared for shared in _SHARED if shared == "common.h" or f'#include "{shared}"' in source]
    joined = "".join((kernels / shared).read_text(encoding="utf-8") for shared in wanted) + source
    lines = [line for line in joined.splitlines(keepends=True) if not _DROPPED.search(line)]
    for mark, header in _INLINED.items():
        content = (metal / header).read_text(encoding="utf-8")
        lines = [content if mark in line else line for line in lines]
        lines = "".join(lines).splitlines(keepends=True)
    return "".join(lines)


def measure(metal: Path, names: Iterable[str]) -> tuple[int, int]:
    """Return the embedded bytes of these kernel sources and the number of pipelines they name."""
    texts = [text(metal, name) for name in sorted(names)]
    pipelines = {name for embedded in texts for name in _PIPELINE.findall(embedded)}
    return sum(len(embedded.encode()) for embedded in texts), len(pipelines)


def main(*folders: str) -> int:
    from sources import kernel_sources  # noqa: PLC0415 - a script's own folder is on its path

    for folder in folders:
        size, pipelines = measure(Path(folder), kernel_sources(Path(folder)))
        sys.stdout.write(f"{folder}: {size:,} bytes of embedded source, {pipelines:,} pipelines\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
