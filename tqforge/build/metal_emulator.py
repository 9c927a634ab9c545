"""Build the Metal emulator for a llama.cpp tree, and rebuild it when one of its inputs changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tqforge.adapters import fs, proc, toolchain
from tqforge.adapters.cmake import BuildTree
from tqforge.build import compiler_log
from tqforge.core import emulator
from tqforge.core.values import Tools
from tqforge.errors import BuildError, ToolchainError

REMEDY = f"Install it (Debian, Ubuntu: `{emulator.INSTALL}`), or run this stage on a Mac."
#: Head sizes at which stock types are tested next to tq3_0.
CONTROL_HEADS = (64, 128)
_STAMP = "emulator.json"
#: Kernel sources. A name that ends in ? may be absent from the tree.
ROWS = ("quantize",)
ATTENTION = ("fa_aux", "fa_f16", "fa_vec_f16", "fa_tq3_0?", "fa_vec_tq3_0?")
_CONTROL = ("fa_q4_0", "fa_vec_q4_0")
_GRAPH = ("binbcast", "misc", "mul_mm", "mul_mv", "norm", "reduce", "rope", "softmax", "unary")
HELPERS = "flash_attn_ext_(kv|pad|blk|vec_reduce|vec_idx)"
_PLAIN = r'^"(?!kernel_(flash_attn_ext|mul_m))'  # everything except attention and matrix products


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Which kernels to compile. Compiling all of them takes a quarter of an hour."""

    variants: tuple[str, ...]
    sources: tuple[str, ...]
    only: Mapping[str, str]  # by variant: a regular expression for the kernels' host names
    targets: tuple[str, ...] = ("all",)

    def arguments(self, tree: Path, libraries: Path, tools: Tools) -> list[str]:
        """Return the CMake arguments for this recipe."""
        return [
            f"-DLLAMA_DIR={tree}",
            f"-DLLAMA_LIB_DIR={libraries}",
            f"-DMETAL_EMULATOR_VARIANTS={';'.join(self.variants)}",
            f"-DMETAL_EMULATOR_SOURCES={';'.join(self.sources)}",
            *(f"-DMETAL_EMULATOR_ONLY_{variant}={self.only[variant]}" for variant in self.variants),
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={tools.ccache.path if tools.ccache else ''}",
        ]


def verification(head: int) -> Recipe:
    """Return the recipe of `tqforge verify` for a model with this head size.

    It covers tq3_0 at every head size, stock types at two head sizes and the model's, and the other operations of a
    model. The checking variant, which watches every memory access, leaves the last group out.
    """
    rows = "get_rows|set_rows|cpy"
    sizes = "|".join(f"dk{size}_dv{size}" for size in sorted({*CONTROL_HEADS, head}))
    cache = f"tq3_0|flash_attn_ext_f16_dk|{sizes}|{HELPERS}"
    return Recipe(
        variants=("fast", "check"),
        sources=(*ROWS, *ATTENTION, *_CONTROL, *_GRAPH),
        only={"fast": rf"{_PLAIN}|mul_m[mv]_(ext_)?(f16|f32)_f32|{cache}", "check": f"{rows}|{cache}"},
    )


def missing() -> str:
    """Return what this machine lacks to build the emulator, or an empty string."""
    if toolchain.clang_for_metal() is None:
        return f"the {emulator.TITLE} needs {emulator.CLANG}"
    if toolchain.symbolizer_for_metal() is None:
        return f"the {emulator.TITLE} needs llvm-symbolizer of LLVM {emulator.CLANG_VERSION}"
    return ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A llama.cpp tree and its built libraries. `key` changes when either does."""

    tree: Path
    libraries: Path
    key: str


@dataclass(frozen=True, kw_only=True)
class Builder:
    """Builds the emulator in one folder."""

    project: Path
    folder: Path
    tools: Tools
    jobs: int
    environment: Mapping[str, str | None]

    def build(self, recipe: Recipe, source: Source, tell: Callable[[str], None], step: Callable[[str], None]) -> Path:
        """Build the libraries of `recipe` unless they are up to date, and return their folder.

        `tell` receives the reason for a build, `step` each line of Ninja's output.
        Raises ToolchainError without clang, and BuildError with the compiler's first error.
        """
        clang = toolchain.clang_for_metal()
        if clang is None:
            raise ToolchainError(missing(), remedy=REMEDY)
        wanted = inputs(self.project, recipe, source.key, f"{clang.path} {clang.version}")
        changed = differences(_read(self.folder), wanted)
        if not changed:
            return self.folder
        tell(changed)
        (self.folder / _STAMP).unlink(missing_ok=True)
        made = BuildTree(
            source=self.project,
            folder=self.folder,
            tools=replace(self.tools, cxx=clang),
            environment=self.environment,
        )
        made.end_orphans()
        try:
            fresh = made.lost_its_cmake or made.is_of_another_source
            made.configure(recipe.arguments(source.tree, source.libraries, self.tools), fresh=fresh)
            made.build(recipe.targets, self.jobs, step)
        except proc.ProcessError as error:
            raise _explain(error, made) from error
        fs.write_text(self.folder / _STAMP, json.dumps(wanted, indent=2) + "\n")
        return self.folder


def _explain(error: proc.ProcessError, made: BuildTree) -> BuildError:
    failure = compiler_log.first_error(error.done.stdout)
    log = made.build_log if "-C" in error.done.argv else made.configure_log
    what = f"The {emulator.TITLE} does not build: {failure.what}"
    return BuildError(what, where=failure.where or str(log), remedy=f"The full log is in {log}.")


def inputs(project: Path, recipe: Recipe, key: str, clang: str) -> dict[str, str]:
    """Return a digest of each input of a build, by the name used in messages."""
    return {
        "the tree or its libraries": key,
        "the emulator's own sources": digest(project),
        "what is compiled": hashlib.sha256(
            repr((recipe.variants, recipe.sources, sorted(recipe.only.items()), recipe.targets)).encode()
        ).hexdigest()[:16],
        "the compiler": clang,
    }


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return why the emulator must be built, or an empty string."""
    if not old:
        return "it has not been built yet"
    changed = [name for name in new if old.get(name) != new[name]]
    return f"{', '.join(changed)} changed" if changed else ""


def _read(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(found) if isinstance(found, dict) else {}


def digest(project: Path) -> str:
    """Hash the files used by a build. Documentation and suppressions are left out: they are read at run time."""
    digest = hashlib.sha256()
    for path in sorted(project.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".md", ".txt"):
            digest.update(str(path.relative_to(project)).encode() + b"\0" + path.read_bytes())
    digest.update((project / "CMakeLists.txt").read_bytes())
    return digest.hexdigest()[:16]
