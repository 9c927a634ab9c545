"""Guards on the Metal host: upstream's test-backend-ops runs a tree's own Metal kernels on the CPU."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tqforge.adapters import proc, toolchain
from tqforge.adapters.cmake import Tree
from tqforge.domain import buildlog
from tqforge.domain.model import Tools
from tqforge.domain.trailers import Guard

PROGRAM = "test-backend-ops"
DEVICE = "MTL0"
_SUITE = "ops"
_VARIANT = "check"  # the quick one to compile, and the one that watches every access
_ATTENTION = "FLASH_ATTN_EXT"
_HELPERS = "kv|pad|blk|vec_reduce|vec_idx"
#: Operations whose kernels are in one source.
_ROWS = {"CPY", "DUP", "CONT", "GET_ROWS", "SET_ROWS"}


@dataclass(frozen=True)
class Kernels:
    """What is compiled for a guard: kernel sources (a name with ? need not be there) and, of those, which kernels."""

    sources: str
    only: str


def concerns(paths: Iterable[str]) -> bool:
    """Whether a patch changes the Metal backend."""
    return any(path.startswith("ggml/src/ggml-metal/") for path in paths)


def kernels(guard: Guard) -> Kernels:
    """The kernels that a guard can reach. One that is missing all the same is a finding, never a pass."""
    words = dict(zip(guard.args, guard.args[1:], strict=False))
    op, pattern = words.get("-o", ""), words.get("-p", "")
    if op in _ROWS:
        return Kernels("quantize", "tq3_0" if pattern == "tq3_0" else "")
    if op != _ATTENTION:
        return Kernels("", "")
    sizes = re.search(r"\bhsk=(\d+),hsv=(\d+)\b", pattern)
    size = f"dk{sizes[1]}_dv{sizes[2]}(?:_|$)" if sizes else "dk"
    return Kernels("fa_aux;fa_f16;fa_vec_f16;fa_tq3_0?;fa_vec_tq3_0?", f"{size}|flash_attn_ext_({_HELPERS})")


@dataclass(frozen=True, kw_only=True)
class MetalHost:
    """Builds the host for a llama.cpp tree; one build folder serves all trees."""

    project: Path
    folder: Path
    tools: Tools
    jobs: int
    environment: Mapping[str, str | None]

    @cached_property
    def version(self) -> str:
        """A short name of the host's own sources."""
        digest = hashlib.sha256()
        for path in sorted(self.project.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".md":
                digest.update(str(path.relative_to(self.project)).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:8]

    def why_not(self, guard: Guard) -> str:
        """The reason why a guard cannot run here, or an empty string."""
        if not (self.project / "CMakeLists.txt").is_file():
            return "this tqforge carries no Metal host"
        if toolchain.clang_for_metal() is None:
            return "the Metal host needs clang++-19"
        return "" if guard.args[0] == _SUITE else f"the Metal host has no suite '{guard.args[0]}'"

    def build(self, guard: Guard, source: Path, libraries: Path, progress: Callable[[str], None]) -> str:
        """Build what a guard needs of the host for the tree at `source`; why it does not build, or an empty string."""
        clang = toolchain.clang_for_metal()
        assert clang is not None
        tree = Tree(
            source=self.project,
            folder=self.folder,
            tools=replace(self.tools, cxx=clang),
            environment=self.environment,
        )
        wanted = kernels(guard)
        arguments = [
            f"-DLLAMA_DIR={source}",
            f"-DLLAMA_LIB_DIR={libraries}",
            f"-DMETAL_HOST_VARIANTS={_VARIANT}",
            f"-DMETAL_HOST_SOURCES={wanted.sources}",
            f"-DMETAL_HOST_ONLY_{_VARIANT}={wanted.only}",  # without the variant it counts only in a new folder
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={self.tools.ccache.path if self.tools.ccache else ''}",
        ]
        try:
            tree.configure(arguments, fresh=False)
            tree.build([f"metal-host-{_VARIANT}"], self.jobs, progress)
        except proc.ProcessError as error:
            return buildlog.first_error(error.done.stdout).what
        return ""

    def command(self, guard: Guard, programs: Path) -> tuple[list[str | Path], dict[str, str | None]]:
        """What to run, and with which environment. A run that dispatches nothing fails."""
        env: dict[str, str | None] = {
            "GGML_BACKEND_PATH": str(self.folder / f"libmetal-host-{_VARIANT}.so"),
            "METAL_HOST_EXPECT_DISPATCHES": "1",
            "METAL_HOST_QUIET": "1",
        }
        return [programs / PROGRAM, "test", "-b", DEVICE, *guard.args[1:]], env
