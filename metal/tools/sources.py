"""Find the kernel sources of a tree, and check that every list of them in the tree agrees.

A new kernel file must be named in the library table of ggml-metal-device.m and in CMakeLists.txt, and may include only
headers that the embedding step of CMakeLists.txt inlines. On a Mac a missing entry shows when the library is compiled;
here it is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


class SourceError(Exception):
    """The lists of kernel sources disagree, or a requested source is missing."""


def listed_in_device(metal: Path) -> set[str]:
    table = re.search(
        r"#define GGML_METAL_LIBS(?:.*\\\n)*.*\n", (metal / "ggml-metal-device.m").read_text(encoding="utf-8")
    )
    if table is None:
        raise SourceError("ggml-metal-device.m has no GGML_METAL_LIBS table")
    return set(re.findall(r"X\(\w+\s*,\s*(\w+)\s*\)", table[0]))


def listed_in_cmake(metal: Path) -> set[str]:
    text = (metal / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"set\(METALLIB_KERNEL_SOURCES(.*?)\)", text, re.S)
    if found is None:
        raise SourceError("CMakeLists.txt sets no METALLIB_KERNEL_SOURCES")
    return set(re.findall(r"kernels/(\w+)\.metal", found[1]))


def say(true: bool, what: str) -> str:
    return what if true else f"not {what}"


def kernel_sources(metal: Path) -> set[str]:
    """Return the names of the compiled .metal files after all checks."""
    files = {p.stem: p.read_text(encoding="utf-8") for p in (metal / "kernels").glob("*.metal")}
    included = {Path(name).stem for text in files.values() for name in INCLUDE.findall(text) if name.endswith(".metal")}
    on_disk, device, cmake = set(files) - included, listed_in_device(metal), listed_in_cmake(metal)
    problems = [
        f"{name}: {say(name in on_disk, 'on disk')}, {say(name in device, 'in')} the table of ggml-metal-device.m, "
        f"{say(name in cmake, 'in')} CMakeLists.txt"
        for name in sorted(on_disk | device | cmake)
        if not (name in on_disk and name in device and name in cmake)
    ]
    embedding = (metal / "CMakeLists.txt").read_text(encoding="utf-8")
    problems += [
        f"kernels/{path.name} includes {name}, which the embedding step of CMakeLists.txt does not inline"
        for path in sorted((metal / "kernels").iterdir())
        for name in INCLUDE.findall(path.read_text(encoding="utf-8"))
        if Path(name).name not in embedding
    ]
    if problems:
        raise SourceError("the lists of Metal kernel sources disagree:\n  " + "\n  ".join(problems))
    return on_disk


def select(available: set[str], wanted: list[str]) -> list[str]:
    """Return the requested names, or all if none are requested. A name that ends in `?` may be missing."""
    if not wanted:
        return sorted(available)
    missing = [name for name in wanted if not name.endswith("?") and name not in available]
    if missing:
        raise SourceError(f"no such kernel source: {', '.join(missing)}; there are: {', '.join(sorted(available))}")
    return [name for name in dict.fromkeys(w.removesuffix("?") for w in wanted) if name in available]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("metal", type=Path, help="ggml/src/ggml-metal of the tree")
    parser.add_argument("wanted", nargs="*", help="names without .metal; a trailing ? allows a name to be missing")
    arguments = parser.parse_args()
    try:
        chosen = select(kernel_sources(arguments.metal), arguments.wanted)
    except SourceError as error:
        sys.stderr.write(f"sources: {error}\n")
        return 1
    sys.stdout.write(";".join(chosen))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
