"""Build ggml's CPU backend for aarch64 and run its kernels under emulation."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

HOST = Path(__file__).parents[1] / "cross" / "host"
TRIPLE = "aarch64-linux-gnu"
#: Name of the build: compiler's architecture, and a processor of the emulator that has just that.
ARCHITECTURES = {"neon": ("armv8-a", "cortex-a53"), "dotprod": ("armv8.2-a+dotprod+fp16", "cortex-a76")}
#: Has armv8.2-a and fp16, but no dot product instructions.
WITHOUT_DOTPROD = "a64fx"


@dataclass(frozen=True)
class Tools:
    cc: str
    cxx: str
    emulator: str


@dataclass(frozen=True)
class Machine:
    """The programs of one architecture."""

    name: str
    folder: Path
    emulator: str
    processor: str

    def run(
        self, program: str, *argv: str, processor: str | None = None, timeout: float = 900
    ) -> subprocess.CompletedProcess[str]:
        command = [self.emulator, "-cpu", processor or self.processor, str(self.folder / program), *argv]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)

    def kernel(
        self, name: str, n: int, *inputs: NDArray[Any], scratch: Path, processor: str | None = None
    ) -> NDArray[np.uint8]:
        """Output of a kernel on rows of `n` values. Raises AssertionError with what it said."""
        files = []
        for number, values in enumerate(inputs):
            files.append(scratch / f"in{number}.bin")
            np.ascontiguousarray(values).tofile(files[-1])
        out = scratch / "out.bin"
        done = self.run("kernels", name, str(n), str(out), *map(str, files), processor=processor)
        assert done.returncode == 0, f"{name} on {self.name}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return np.fromfile(out, np.uint8)


def find_tools() -> tuple[Tools, list[str]]:
    """The tools, and which of them are not there."""
    emulator = next(filter(shutil.which, ("qemu-aarch64", "qemu-aarch64-static")), "qemu-aarch64")
    names = (f"{TRIPLE}-gcc", f"{TRIPLE}-g++", emulator)
    return Tools(*names), [name for name in names if not shutil.which(name)]


def cache() -> Path:
    """Where builds outlive a test run: `TQFORGE_TEST_CACHE`, else the user's cache folder."""
    named = os.environ.get("TQFORGE_TEST_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("tqforge-tests", appauthor=False))


def build(tree: Path, tools: Tools, name: str) -> Machine:
    """The programs for one architecture. Ninja finds out what of an earlier build is still good."""
    arch, processor = ARCHITECTURES[name]
    folder = cache() / f"cross-{name}-{hashlib.sha256(str(tree).encode()).hexdigest()[:12]}"
    subprocess.run(["cmake", "-S", HOST, "-B", folder, "-G", "Ninja", *_options(tree, tools, arch)], check=True)
    subprocess.run(["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 2)], check=True)
    return Machine(name, folder, tools.emulator, processor)


def _options(tree: Path, tools: Tools, arch: str) -> Sequence[str]:
    options = {
        "LLAMA_DIR": str(tree),
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_C_COMPILER": tools.cc,
        "CMAKE_CXX_COMPILER": tools.cxx,
        "CMAKE_BUILD_TYPE": "Release",
        "BUILD_SHARED_LIBS": "OFF",
        "GGML_NATIVE": "OFF",
        "GGML_CPU_ARM_ARCH": arch,
        "GGML_CPU_REPACK": "OFF",
        "GGML_LLAMAFILE": "OFF",
        "GGML_OPENMP": "OFF",
        "GGML_CCACHE": "OFF",
    }
    if ccache := shutil.which("ccache"):
        options |= {f"CMAKE_{language}_COMPILER_LAUNCHER": ccache for language in ("C", "CXX")}
    return [f"-D{key}={value}" for key, value in options.items()]
