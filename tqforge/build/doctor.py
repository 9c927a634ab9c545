"""The checks of `tqforge doctor`: each finding says what was found, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tqforge.adapters import toolchain
from tqforge.adapters.git import INSTALL, OLDEST, OLDEST_TO_MERGE
from tqforge.build import portable
from tqforge.core import emulator
from tqforge.core.values import Host, Tool
from tqforge.errors import TqforgeError
from tqforge.workspace import Workspace

_GIB = 1 << 30
_DISK_NEEDED, _DISK_WISHED = 3 * _GIB // 2, 4 * _GIB
_MEMORY_WISHED = 4 * _GIB


class DoctorLevel(StrEnum):
    """`bad` prevents a build; `optional` is an inconvenience."""

    GOOD = "good"
    OPTIONAL = "optional"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check."""

    name: str
    level: DoctorLevel
    seen: str
    remedy: str = ""


def examine(workspace: Workspace) -> list[Finding]:
    """Run all checks, in the order in which a build needs them."""
    host = toolchain.host()
    found = [architecture(host), *_tools(), _compiles(), _optional_tools(host)]
    symbolizer = toolchain.symbolizer_for_metal() is not None
    found.append(metal_emulator(host, toolchain.clang_for_metal(), symbolizer=symbolizer))
    if host.system == "Darwin":
        found.append(_sdk())
    folder = next(path for path in (workspace.root, *workspace.root.parents) if path.exists())
    found += [disk(toolchain.free_space(folder), folder), memory(host.memory), _instructions(workspace, host)]
    return found


def architecture(host: Host) -> Finding:
    """Check that Python has the architecture of the machine."""
    seen = f"{host.system} {host.release}, {host.machine}, {host.cpu}, {host.cores} cores"
    if host.translated:
        remedy = "Install tqforge with an arm64 Python: this one runs under Rosetta and cannot use Metal."
        return Finding(name="machine", level=DoctorLevel.BAD, seen=f"{seen}; Python is {host.python}", remedy=remedy)
    if host.machine != host.python:
        remedy = f"Install tqforge with a {host.machine} Python."
        return Finding(name="machine", level=DoctorLevel.BAD, seen=f"{seen}; Python is {host.python}", remedy=remedy)
    return Finding(name="machine", level=DoctorLevel.GOOD, seen=seen)


def disk(free: int, folder: Path) -> Finding:
    """Check the space for the archive, the repository and a build."""
    seen = f"{free / _GIB:.1f} GiB free at {folder}"
    remedy = "A base with one build takes about 1.5 GiB. Free some space, or choose another disk with --workspace."
    if free < _DISK_NEEDED:
        return Finding(name="disk", level=DoctorLevel.BAD, seen=seen, remedy=remedy)
    if free < _DISK_WISHED:
        return Finding(name="disk", level=DoctorLevel.OPTIONAL, seen=seen, remedy=remedy)
    return Finding(name="disk", level=DoctorLevel.GOOD, seen=seen)


def memory(total: int) -> Finding:
    """Check the memory for compilers and a model."""
    seen = f"{total / _GIB:.1f} GiB"
    if total < _MEMORY_WISHED:
        remedy = "Compilers may run out of memory: build with `--jobs 1`."
        return Finding(name="memory", level=DoctorLevel.OPTIONAL, seen=seen, remedy=remedy)
    return Finding(name="memory", level=DoctorLevel.GOOD, seen=seen)


def git(tool: Tool) -> Finding:
    """Check the version of git."""
    numbers = tuple(int(part) for part in tool.version.split(".")[:2] if part.isdigit())
    seen = f"{tool.version} at {tool.path}"
    if numbers < OLDEST:
        return Finding(name="git", level=DoctorLevel.BAD, seen=seen, remedy=INSTALL)
    if numbers < OLDEST_TO_MERGE:
        remedy = f"Builds work, but `tqforge patch drift`, `tqforge patch prove` and `tqforge pr` do not. {INSTALL}"
        return Finding(name="git", level=DoctorLevel.OPTIONAL, seen=seen, remedy=remedy)
    return Finding(name="git", level=DoctorLevel.GOOD, seen=seen)


def _tools() -> list[Finding]:
    found = [
        _tool("C compiler", lambda: toolchain.compiler("CC")),
        _tool("C++ compiler", lambda: toolchain.compiler("CXX")),
    ]
    found += [_tool("CMake", toolchain.cmake), _tool("Ninja", toolchain.ninja)]
    try:
        return [*found, git(toolchain.git())]
    except TqforgeError as error:
        return [*found, Finding(name="git", level=DoctorLevel.BAD, seen=error.what, remedy=error.remedy)]


def _tool(name: str, find: Callable[[], Tool]) -> Finding:
    try:
        tool = find()
    except TqforgeError as error:
        return Finding(name=name, level=DoctorLevel.BAD, seen=error.what, remedy=error.remedy)
    return Finding(name=name, level=DoctorLevel.GOOD, seen=f"{tool.version} at {tool.path}".strip())


def _compiles() -> Finding:
    try:
        said = toolchain.compile_probe()
    except TqforgeError as error:
        return Finding(name="C++17 program", level=DoctorLevel.BAD, seen=error.what, remedy=error.remedy)
    return Finding(name="C++17 program", level=DoctorLevel.GOOD, seen=said)


def _optional_tools(host: Host) -> Finding:
    tool = toolchain.ccache()
    if tool:
        return Finding(name="ccache", level=DoctorLevel.GOOD, seen=str(tool.path))
    how = "brew install ccache" if host.system == "Darwin" else "apt-get install ccache"
    return Finding(
        name="ccache",
        level=DoctorLevel.OPTIONAL,
        seen="not installed",
        remedy=f"`{how}` makes later builds much faster.",
    )


def metal_emulator(host: Host, clang: Tool | None, *, symbolizer: bool = True) -> Finding:
    """Check for the compiler of the Metal emulator. A Mac does not need it."""
    if host.system == "Darwin":
        return Finding(name="Metal", level=DoctorLevel.GOOD, seen="supported by this machine")
    if clang and not symbolizer:
        return Finding(
            name=emulator.TITLE,
            level=DoctorLevel.OPTIONAL,
            seen=f"{emulator.CLANG} found, llvm-symbolizer not found",
            remedy=f"`{emulator.INSTALL}` adds source lines to what it reports.",
        )
    if clang:
        return Finding(name=emulator.TITLE, level=DoctorLevel.GOOD, seen=f"{clang.version} at {clang.path}")
    return Finding(
        name=emulator.TITLE,
        level=DoctorLevel.OPTIONAL,
        seen=f"{emulator.CLANG} not found",
        remedy=f"`{emulator.INSTALL}` lets tqforge run the Metal kernels on this CPU.",
    )


def _sdk() -> Finding:
    try:
        return Finding(name="macOS SDK", level=DoctorLevel.GOOD, seen=toolchain.sdk())
    except TqforgeError as error:
        return Finding(name="macOS SDK", level=DoctorLevel.BAD, seen=error.what, remedy=error.remedy)


def _instructions(workspace: Workspace, host: Host) -> Finding:
    why = portable.why_portable(workspace, host)
    if why:
        remedy = "`tqforge build --native` tries again."
        return Finding(name="instructions", level=DoctorLevel.OPTIONAL, seen=f"portable: {why}", remedy=remedy)
    return Finding(name="instructions", level=DoctorLevel.GOOD, seen="native: builds are optimized for this CPU")
