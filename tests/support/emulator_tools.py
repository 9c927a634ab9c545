"""Build the Metal emulator for a tree, run programs on it and read its reports.

Builds are cached and reused while tree, emulator, compiler and options are the same.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import platformdirs

from tqforge.core import emulator as names

METAL = Path(__file__).parents[2] / "metal"
CONTROLS = ("q4_0", "q8_0", "f16")
SOURCES = ("quantize", "fa_aux", *(f"fa_{t}" for t in CONTROLS), *(f"fa_vec_{t}" for t in CONTROLS))
# what a whole model needs besides, with f16 weights
GRAPH = ("binbcast", "misc", "mul_mm", "mul_mv", "norm", "rope", "unary")
PLAIN = r'^"(?!kernel_(flash_attn_ext|mul_m))|mul_m[mv]_(ext_)?(f16|f32)_f32'
# two head sizes; in the checking build, all head sizes of what the patches add and of the f16 kernels they go through
ONLY = "dk64_dv64|dk128_dv128|get_rows|set_rows|cpy|flash_attn_ext_(kv|pad|blk|vec_reduce|vec_idx)"


def tool(name: str) -> ModuleType:
    """Import a script of metal/tools, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"metal_{name}", METAL / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Tree:
    """A llama.cpp source tree and the folder with its libraries."""

    root: Path
    libraries: Path

    @property
    def metal(self) -> Path:
        return self.root / "ggml/src/ggml-metal"

    def has_type(self, name: str) -> bool:
        return f"GGML_TYPE_{name.upper()}" in (self.root / "ggml/include/ggml.h").read_text(encoding="utf-8")

    def sources(self) -> list[str]:
        """Return the kernel sources that the tests need: those of the control types and all that the patches add."""
        return [*SOURCES, *sorted(s for s in tool("sources").kernel_sources(self.metal) if "tq3_0" in s)]


@dataclass(frozen=True)
class Report:
    """The exit code, output and findings of a process on the emulator."""

    code: int
    output: str
    data: Mapping[str, Any]

    @property
    def dispatches(self) -> dict[str, int]:
        return dict(self.data["dispatches"])

    def findings(self, severity: str = "error") -> list[dict[str, Any]]:
        return [f for f in self.data["findings"] if f["severity"] == severity]

    def kinds(self) -> set[str]:
        return {f["kind"] for f in self.findings()}

    def known(self) -> set[str]:
        return {f["known_as"] for f in self.findings("known")}

    def describe(self) -> str:
        lines = [
            f"{f['kind']} in {f['kernel']}: {f['text']} {f['places'][:1]} {f['against'][:1]}" for f in self.findings()
        ]
        return "\n".join([f"exit {self.code}", *lines, self.output[-3000:]])


@dataclass(frozen=True)
class Emulator:
    """A built emulator. `folder` holds its libraries."""

    tree: Tree
    folder: Path
    build: Path = field(repr=False)

    def run(
        self, argv: Sequence[str | Path], variant: str = "check", env: Mapping[str, str] | None = None, **settings: str
    ) -> Report:
        """Run a program on the emulator with METAL_EMULATOR_<SETTING> set for each setting."""
        report = self.folder / f"report-{os.getpid()}.json"
        report.unlink(missing_ok=True)
        env = {k: v for k, v in os.environ.items() if not k.startswith(names.PREFIX)} | dict(env or {})
        env |= {f"{names.PREFIX}{k.upper()}": v for k, v in settings.items()}
        env |= {names.QUIET: "1", names.REPORT: str(report)}
        env["GGML_BACKEND_PATH"] = str(names.library(self.folder, variant))
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, env=env, timeout=600, check=False)
        data = json.loads(report.read_text()) if report.exists() else {"dispatches": {}, "findings": [], "totals": {}}
        report.unlink(missing_ok=True)
        return Report(done.returncode, done.stdout + done.stderr, data)

    def direct(self, *argv: str, variant: str = "check", **settings: str) -> Report:
        """Run the emulator's own cases: single operations against a float64 reference, one buffer per tensor."""
        return self.run([self.folder / names.DIRECT, *argv], variant, None, **settings)


def _digest(paths: Iterable[Path], *words: str) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    for path in sorted(paths):
        digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def _inputs(tree: Tree) -> list[Path]:
    """Return the files a build depends on. Documentation and suppressions are left out: they are read at run time."""
    files = [
        p for p in METAL.rglob("*") if p.is_file() and "__pycache__" not in p.parts and p.suffix not in {".md", ".txt"}
    ]
    files += [METAL / "CMakeLists.txt", *(p for p in tree.metal.rglob("*") if p.is_file())]
    return files + [p for folder in ("ggml/include", "ggml/src") for p in (tree.root / folder).glob("*.h")]


def cache() -> Path:
    """Return the folder of cached builds: TQFORGE_TEST_CACHE or the user's cache folder."""
    named = os.environ.get("TQFORGE_TEST_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("tqforge-tests", appauthor=False))


def build_emulator(tree: Tree, compiler: str) -> Emulator:
    """Return the emulator for `tree`, building it unless it is cached."""
    library = (tree.libraries / "libggml-base.so").resolve().stat()
    options = {
        "LLAMA_DIR": str(tree.root),
        "LLAMA_LIB_DIR": str(tree.libraries),
        "METAL_EMULATOR_SOURCES": ";".join([*tree.sources(), *GRAPH]),
        "METAL_EMULATOR_ONLY": ONLY,
        "METAL_EMULATOR_ONLY_fast": f"{ONLY}|{PLAIN}",
        "METAL_EMULATOR_ONLY_check": f"{ONLY}|tq3_0|flash_attn_ext_f16_dk",
        "CMAKE_CXX_COMPILER": compiler,
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
    }
    if ccache := shutil.which("ccache"):
        options["CMAKE_CXX_COMPILER_LAUNCHER"] = ccache
    key = _digest(
        _inputs(tree), *sorted(f"{k}={v}" for k, v in options.items()), f"{library.st_size} {library.st_mtime_ns}"
    )
    folder = cache() / f"metal-emulator-{key}"
    done = folder / "built"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        arguments = [f"-D{k}={v}" for k, v in options.items()]
        subprocess.run(["cmake", "-S", METAL, "-B", folder, "-G", "Ninja", *arguments], check=True)
        subprocess.run(["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 2)], check=True)
        done.touch()
    return Emulator(tree, folder, folder)
