"""Detect the machine and the build tools on it."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tqforge.adapters import proc
from tqforge.adapters.git import INSTALL
from tqforge.core import emulator
from tqforge.core.values import Host, Tool, Tools
from tqforge.errors import ToolchainError

_ARCHITECTURES = {"aarch64": "arm64", "amd64": "x86_64", "x64": "x86_64"}
_COMPILERS = {"CC": ("cc", "gcc", "clang"), "CXX": ("c++", "g++", "clang++")}
_OLDEST_CMAKE = (3, 24)
_TIMEOUT = 30.0
_PROBE = """#include <cstdio>
#include <filesystem>
#include <thread>
int main() {
    std::thread([] {}).join();
    return std::printf("%ld\\n", (long) __cplusplus) < 0 || std::filesystem::path("a") == "b";
}
"""


def architecture(name: str) -> str:
    """Normalize the name of an architecture, e.g. to `arm64` or `x86_64`."""
    return _ARCHITECTURES.get(name.lower(), name.lower())


def host() -> Host:
    """Describe this machine."""
    mine = architecture(platform.machine())
    mac = platform.system() == "Darwin"
    cpu, features = _mac_cpu() if mac else _linux_cpu()
    return Host(
        system=platform.system(),
        release=platform.mac_ver()[0] if mac else platform.release(),
        machine="arm64" if mac and _sysctl("sysctl.proc_translated") == "1" else mine,
        python=_python_architecture(mine),
        cpu=cpu or platform.processor(),
        features=features,
        cores=_cores(),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )


def _python_architecture(machine: str) -> str:
    if sys.maxsize < 2**32:
        return {"x86_64": "x86", "arm64": "arm"}.get(machine, machine)
    return machine


def _cores() -> int:
    with suppress(AttributeError):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _linux_cpu() -> tuple[str, frozenset[str]]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", frozenset()
    name = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    return (name[1] if name else ""), frozenset(flags[1].split() if flags else ())


def _mac_cpu() -> tuple[str, frozenset[str]]:
    words = f"{_sysctl('machdep.cpu.features')} {_sysctl('machdep.cpu.leaf7_features')}".lower()
    known = {"avx1.0": "avx", "sse4.2": "sse4_2"}
    return _sysctl("machdep.cpu.brand_string"), frozenset(known.get(word, word) for word in words.split())


def _sysctl(name: str) -> str:
    with suppress(OSError, TimeoutError):
        return proc.run(["/usr/sbin/sysctl", "-n", name], check=False, timeout=_TIMEOUT).stdout.strip()
    return ""


def tools() -> Tools:
    """Return the tools of a build. Raises ToolchainError if one is missing."""
    return Tools(cmake=cmake(), ninja=ninja(), cc=compiler("CC"), cxx=compiler("CXX"), ccache=ccache())


def cmake() -> Tool:
    """Find CMake in its wheel, else on PATH."""
    tool = _from_wheel("cmake", ("data/bin/cmake",)) or _from_path("cmake", r"version (\S+)")
    if _numbers(tool.version) < _OLDEST_CMAKE:
        raise ToolchainError(
            f"CMake {tool.version} is too old: version {'.'.join(map(str, _OLDEST_CMAKE))} or newer is required.",
            where=str(tool.path),
            remedy=f"Install it: `{sys.executable} -m pip install --upgrade cmake`.",
        )
    return tool


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def ninja() -> Tool:
    """Find Ninja in its wheel, else on PATH."""
    beside = Path(sys.executable).parent / "ninja"
    return _from_wheel("ninja", ("data/bin/ninja", str(beside))) or _from_path("ninja", r"(\S+)")


def ccache() -> Tool | None:
    """Find ccache, if it is installed."""
    path = shutil.which("ccache")
    return Tool(name="ccache", path=Path(path), version="") if path else None


def clang_for_metal() -> Tool | None:
    """Find the clang that compiles Metal sources for the CPU."""
    path = shutil.which(emulator.CLANG)
    return Tool(name=emulator.CLANG, path=Path(path), version=_first_line([path, "--version"])) if path else None


def symbolizer_for_metal() -> Path | None:
    """Find the program that turns addresses in a Metal kernel into source lines."""
    version = emulator.CLANG_VERSION
    beside = f"/usr/lib/llvm-{version}/bin/llvm-symbolizer"
    path = shutil.which(f"llvm-symbolizer-{version}") or shutil.which("llvm-symbolizer") or shutil.which(beside)
    return Path(path) if path else None


def git() -> Tool:
    """Find git on PATH."""
    path = shutil.which("git")
    if not path:
        raise ToolchainError("git not found.", remedy=INSTALL)
    said = re.search(r"version ([\d.]+)", _first_line([path, "--version"]))
    return Tool(name="git", path=Path(path), version=said[1] if said else "")


def sdk() -> str:
    """Return version and path of Apple's SDK."""
    version_said = _first_line(["xcrun", "--sdk", "macosx", "--show-sdk-version"])
    return f"{version_said} at {_first_line(['xcrun', '--sdk', 'macosx', '--show-sdk-path'])}"


def free_space(folder: Path) -> int:
    """Return the free bytes of the disk of a folder."""
    return shutil.disk_usage(folder).free


def compile_probe() -> str:
    """Compile, link and run a small C++17 program. Raises ToolchainError with the compiler's message."""
    cxx = compiler("CXX")
    with tempfile.TemporaryDirectory(prefix="tqforge-") as folder:
        source, program = Path(folder) / "probe.cpp", Path(folder) / "probe"
        source.write_text(_PROBE, encoding="ascii")
        try:
            proc.run([cxx.path, "-std=c++17", "-pthread", source, "-o", program], timeout=120, env={"LC_ALL": "C"})
            said = proc.run([program], timeout=_TIMEOUT).stdout.strip()
        except (proc.ProcessError, OSError, TimeoutError) as error:
            said = error.done.tail(3) if isinstance(error, proc.ProcessError) else str(error)
            raise ToolchainError(
                f"The compiler cannot build a working C++17 program: {said}", remedy=compiler_remedy()
            ) from error
    return f"compiles, links and runs (__cplusplus {said})"


def compiler(variable: str) -> Tool:
    """Find the C or C++ compiler: the one in `CC` or `CXX`, or the system's."""
    named = os.environ.get(variable)
    for name in (named,) if named else _COMPILERS[variable]:
        path = shutil.which(name)
        if path:
            return Tool(name=name, path=Path(path), version=_first_line([path, "--version"]))
    language = "C++" if variable == "CXX" else "C"
    raise ToolchainError(
        f"{language} compiler not found{f': {variable} is {named}' if named else ''}.",
        where=f"PATH={os.environ.get('PATH', '')}",
        remedy=compiler_remedy(),
    )


def compiler_remedy() -> str:
    """Return how to install a compiler on this machine."""
    if platform.system() == "Darwin":
        return "Install Apple's command line tools: `xcode-select --install`."
    for manager, words in (
        ("apt-get", "sudo apt-get install g++"),
        ("dnf", "sudo dnf install gcc-c++"),
        ("pacman", "sudo pacman -S gcc"),
        ("apk", "sudo apk add g++"),
    ):
        if shutil.which(manager):
            return f"Install one: `{words}`."
    return "Install g++ or clang, or set CC and CXX."


def _first_line(argv: Sequence[str]) -> str:
    try:
        done = proc.run(argv, check=False, timeout=_TIMEOUT, env={"LC_ALL": "C"})
    except (OSError, TimeoutError) as error:
        raise ToolchainError(f"{argv[0]} cannot be run: {error}", remedy=compiler_remedy()) from error
    if not done.ok:
        raise ToolchainError(f"{argv[0]} failed: {done.tail(3)}", remedy=compiler_remedy())
    return (done.stdout.strip().splitlines() or [""])[0]


def _from_wheel(package: str, places: Sequence[str]) -> Tool | None:
    found = importlib.util.find_spec(package)
    if not found or not found.submodule_search_locations:
        return None
    for place in places:
        path = Path(found.submodule_search_locations[0]) / place
        with suppress(PackageNotFoundError):
            if path.is_file():
                return Tool(name=package, path=path, version=version(package))
    return None


def _from_path(name: str, pattern: str) -> Tool:
    path = shutil.which(name)
    if not path:
        raise ToolchainError(f"{name} not found.", remedy=f"Install it: `{sys.executable} -m pip install {name}`.")
    said = re.search(pattern, _first_line([path, "--version"]))
    return Tool(name=name, path=Path(path), version=said[1] if said else "")
