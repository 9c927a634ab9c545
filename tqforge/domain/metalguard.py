"""Guards on the Metal host: upstream's test-backend-ops runs a tree's own Metal kernels on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tqforge.adapters import proc, toolchain
from tqforge.adapters.cmake import Tree
from tqforge.domain import buildlog
from tqforge.domain.model import Tools
from tqforge.domain.trailers import Guard

PROGRAM = "test-backend-ops"
DEVICE = "MTL0"
_SUITE = "ops"
#: The kernel sources that cache types need; a name with ? need not be there.
_SOURCES = "quantize;fa_aux;fa_f16;fa_vec_f16;fa_tq3_0?;fa_vec_tq3_0?"
_ONLY = "tq3_0|flash_attn_ext_f16_dk|flash_attn_ext_(kv|pad|blk|vec_reduce|vec_idx)"
_VARIANT = "check"  # the quick one to compile, and the one that watches every access


@dataclass(frozen=True, kw_only=True)
class MetalHost:
    """Builds the host for a llama.cpp tree; one build folder serves all trees."""

    project: Path
    folder: Path
    tools: Tools
    jobs: int
    environment: Mapping[str, str | None]

    def why_not(self, guard: Guard) -> str:
        """The reason why a guard cannot run here, or an empty string."""
        if not (self.project / "CMakeLists.txt").is_file():
            return "this tqforge carries no Metal host"
        if toolchain.clang_for_metal() is None:
            return "the Metal host needs clang++-19"
        return "" if guard.args[0] == _SUITE else f"the Metal host has no suite '{guard.args[0]}'"

    def build(self, source: Path, libraries: Path, progress: Callable[[str], None]) -> str:
        """Build the host for the tree at `source`; why it does not build, or an empty string."""
        clang = toolchain.clang_for_metal()
        assert clang is not None
        tree = Tree(
            source=self.project,
            folder=self.folder,
            tools=replace(self.tools, cxx=clang),
            environment=self.environment,
        )
        arguments = [
            f"-DLLAMA_DIR={source}",
            f"-DLLAMA_LIB_DIR={libraries}",
            f"-DMETAL_HOST_VARIANTS={_VARIANT}",
            f"-DMETAL_HOST_SOURCES={_SOURCES}",
            f"-DMETAL_HOST_ONLY={_ONLY}",
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={self.tools.ccache.path if self.tools.ccache else ''}",
        ]
        try:
            tree.configure(arguments, fresh=False)
            tree.build(["all"], self.jobs, progress)
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
