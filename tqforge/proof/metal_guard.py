"""Run guards on the Metal emulator: upstream's test-backend-ops with the tree's Metal kernels, executed on the CPU."""

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
from tqforge.core import emulator
from tqforge.errors import BuildError
from tqforge.series.trailers import Guard

PROGRAM = "test-backend-ops"
_SUITE = "ops"
_VARIANT = "check"  # compiles fastest and watches every memory access
_ATTENTION = "FLASH_ATTN_EXT"
#: Operations whose kernels share one source file.
_ROWS = {"CPY", "DUP", "CONT", "GET_ROWS", "SET_ROWS"}


def concerns(paths: Iterable[str]) -> bool:
    """Return whether a patch changes the Metal backend."""
    return any(path.startswith("ggml/src/ggml-metal/") for path in paths)


def recipe(guard: Guard) -> Recipe:
    """Return the recipe with the kernels that a guard can reach. The emulator reports a missing kernel as an error."""
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
    return Recipe(variants=(_VARIANT,), sources=sources, only={_VARIANT: only}, targets=(emulator.target(_VARIANT),))


@dataclass(frozen=True, kw_only=True)
class MetalEmulator:
    """Builds the emulator for successive llama.cpp trees and makes the command line of a guard."""

    builder: metal_emulator.Builder

    @cached_property
    def version(self) -> str:
        """A short hash of the emulator's sources and suppressions."""
        known = self.builder.project / "suppressions.txt"
        listed = known.read_bytes() if known.is_file() else b""
        return hashlib.sha256(metal_emulator.digest(self.builder.project).encode() + listed).hexdigest()[:8]

    def why_not(self, guard: Guard) -> str:
        """Return why a guard cannot run here, or an empty string."""
        if not (self.builder.project / "CMakeLists.txt").is_file():
            return f"this tqforge has no {emulator.TITLE}"
        known = guard.args[0] == _SUITE
        return metal_emulator.missing() if known else f"the {emulator.TITLE} has no suite '{guard.args[0]}'"

    def build(self, guard: Guard, source: metal_emulator.Source, progress: Callable[[str], None]) -> str:
        """Build the kernels a guard needs. Return why the tree's kernels do not compile, or an empty string."""
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
        """Return the command line and environment. A run that dispatches nothing fails."""
        env = emulator.environment(self.builder.folder, _VARIANT)
        env["LLAMA_TEST_FA_VEC_DISABLE"] = "1"  # skips a sweep over kernel variants that -p cannot narrow
        return [programs / PROGRAM, "test", "-b", emulator.DEVICE, *guard.args[1:]], env
