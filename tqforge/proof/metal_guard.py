"""Guards on the Metal host: upstream's test-backend-ops runs a tree's own Metal kernels on the CPU."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tqforge.adapters import proc
from tqforge.build import compiler_log, metal_emulator
from tqforge.build.metal_emulator import Recipe
from tqforge.errors import BuildError
from tqforge.series.trailers import Guard

PROGRAM = "test-backend-ops"
_SUITE = "ops"
_VARIANT = "check"  # the quick one to compile, and the one that watches every access
_ATTENTION = "FLASH_ATTN_EXT"
#: Operations whose kernels are in one source.
_ROWS = {"CPY", "DUP", "CONT", "GET_ROWS", "SET_ROWS"}


def concerns(paths: Iterable[str]) -> bool:
    """Whether a patch changes the Metal backend."""
    return any(path.startswith("ggml/src/ggml-metal/") for path in paths)


def recipe(guard: Guard) -> Recipe:
    """The kernels that a guard can reach. One that is missing all the same is a finding, never a pass."""
    words = dict(zip(guard.args, guard.args[1:], strict=False))
    op, pattern = words.get("-o", ""), words.get("-p", "")
    if op in _ROWS:
        return _recipe(metal_emulator.ROWS, "tq3_0" if pattern == "tq3_0" else "")
    if op != _ATTENTION:
        return _recipe((), "")  # everything
    sizes = re.search(r"\bhsk=(\d+),hsv=(\d+)\b", pattern)
    size = f"dk{sizes[1]}_dv{sizes[2]}(?!\\d)" if sizes else "dk"
    return _recipe(metal_emulator.ATTENTION, f"{size}|{metal_emulator.HELPERS}")


def _recipe(sources: tuple[str, ...], only: str) -> Recipe:
    return Recipe(
        variants=(_VARIANT,), sources=sources, only={_VARIANT: only}, targets=(metal_emulator.target(_VARIANT),)
    )


@dataclass(frozen=True, kw_only=True)
class MetalHost:
    """Builds the host for one llama.cpp tree after the other, and says how a guard runs on it."""

    builder: metal_emulator.Builder

    @cached_property
    def version(self) -> str:
        """A short name of the host's own sources, and of the findings that it is told to know."""
        known = self.builder.project / "suppressions.txt"
        listed = known.read_bytes() if known.is_file() else b""
        return hashlib.sha256(metal_emulator.digest(self.builder.project).encode() + listed).hexdigest()[:8]

    def why_not(self, guard: Guard) -> str:
        """The reason why a guard cannot run here, or an empty string."""
        if not (self.builder.project / "CMakeLists.txt").is_file():
            return "this tqforge carries no Metal host"
        known = guard.args[0] == _SUITE
        return metal_emulator.missing() if known else f"the Metal host has no suite '{guard.args[0]}'"

    def build(self, guard: Guard, source: metal_emulator.Source, progress: Callable[[str], None]) -> str:
        """Build what a guard needs of the host; why the tree's kernels do not compile, or an empty string."""
        try:
            self.builder.build(recipe(guard), source, lambda _: None, progress)
        except BuildError as error:
            cause = error.__cause__
            if isinstance(cause, proc.ProcessError) and (
                cause.done.signal_name or compiler_log.first_error(cause.done.stdout).cause != "source"
            ):
                raise
            return error.what
        return ""

    def command(self, guard: Guard, programs: Path) -> tuple[list[str | Path], dict[str, str | None]]:
        """What to run, and with which environment. A run that dispatches nothing fails."""
        env: dict[str, str | None] = {
            "GGML_BACKEND_PATH": str(self.builder.folder / f"lib{metal_emulator.target(_VARIANT)}.so"),
            "METAL_HOST_EXPECT_DISPATCHES": "1",
            "METAL_HOST_QUIET": "1",
            "LLAMA_TEST_FA_VEC_DISABLE": "1",  # a sweep over forced variants that no pattern narrows
        }
        return [programs / PROGRAM, "test", "-b", metal_emulator.DEVICE, *guard.args[1:]], env
