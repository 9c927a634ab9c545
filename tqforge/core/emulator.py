"""Names shared by the Metal emulator (`metal/`) and everything that builds, loads or runs it."""

from __future__ import annotations

from pathlib import Path

CLANG_VERSION = "19"  # also in metal/CMakeLists.txt, .ci/run and the texts: a test keeps them equal
CLANG = f"clang++-{CLANG_VERSION}"
INSTALL = f"apt-get install clang-{CLANG_VERSION} llvm-{CLANG_VERSION}"
TITLE = "Metal emulator"
#: The device that its backend registers.
DEVICE = "MTL0"
DIRECT = "metal-emulator-direct"
RUNTIME = "libmetal-emulator-runtime.so"
PREFIX = "METAL_EMULATOR_"
QUIET = f"{PREFIX}QUIET"
EXPECT_DISPATCHES = f"{PREFIX}EXPECT_DISPATCHES"
REPORT = f"{PREFIX}REPORT"
FAMILY = f"{PREFIX}FAMILY"


def target(variant: str) -> str:
    """Return the CMake target of the backend library."""
    return f"metal-emulator-{variant}"


def library(folder: Path, variant: str) -> Path:
    """Return the backend library that a program loads."""
    return folder / f"lib{target(variant)}.so"


def environment(folder: Path, variant: str, report: Path | None = None) -> dict[str, str | None]:
    """Return the environment of a program that loads the backend and must dispatch at least one kernel."""
    return {
        "GGML_BACKEND_PATH": str(library(folder, variant)),
        EXPECT_DISPATCHES: "1",
        QUIET: "1",
        REPORT: str(report) if report else None,
    }
