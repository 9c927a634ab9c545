"""The Metal host for a llama.cpp tree: what is compiled of it, and whether what lies there is still it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tqforge.adapters import fs, proc, toolchain
from tqforge.adapters.cmake import BuildTree
from tqforge.build import compiler_log
from tqforge.core.values import Tools
from tqforge.errors import BuildError, ToolchainError

DEVICE = "MTL0"
REMEDY = "Install it (Debian, Ubuntu: `apt-get install clang-19 llvm-19`), or run this stage on a Mac."
#: Head sizes at which stock types are tested beside ours.
CONTROL_HEADS = (64, 128)
_STAMP = "host.json"
#: Kernel sources; one whose name ends in ? need not be in the tree.
ROWS = ("quantize",)
ATTENTION = ("fa_aux", "fa_f16", "fa_vec_f16", "fa_tq3_0?", "fa_vec_tq3_0?")
_CONTROL = ("fa_q4_0", "fa_vec_q4_0")
_GRAPH = ("binbcast", "misc", "mul_mm", "mul_mv", "norm", "reduce", "rope", "softmax", "unary")
HELPERS = "flash_attn_ext_(kv|pad|blk|vec_reduce|vec_idx)"
_PLAIN = r'^"(?!kernel_(flash_attn_ext|mul_m))'  # everything that is neither attention nor a matrix product


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Which part of the kernels is compiled: all of them would take a quarter of an hour."""

    variants: tuple[str, ...]
    sources: tuple[str, ...]
    only: Mapping[str, str]  # by variant: a regular expression for host names
    targets: tuple[str, ...] = ("all",)

    def arguments(self, tree: Path, libraries: Path, tools: Tools) -> list[str]:
        """For CMake."""
        return [
            f"-DLLAMA_DIR={tree}",
            f"-DLLAMA_LIB_DIR={libraries}",
            f"-DMETAL_HOST_VARIANTS={';'.join(self.variants)}",
            f"-DMETAL_HOST_SOURCES={';'.join(self.sources)}",
            *(f"-DMETAL_HOST_ONLY_{variant}={self.only[variant]}" for variant in self.variants),
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={tools.ccache.path if tools.ccache else ''}",
        ]


def verification(head: int) -> Recipe:
    """For `verify`: the type at every head size, stock types at two and at the model's own, the ops of a whole model.

    The checking variant, which watches every access, has no part for whole models.
    """
    rows = "get_rows|set_rows|cpy"
    sizes = "|".join(f"dk{size}_dv{size}" for size in sorted({*CONTROL_HEADS, head}))
    cache = f"tq3_0|flash_attn_ext_f16_dk|{sizes}|{HELPERS}"
    return Recipe(
        variants=("fast", "check"),
        sources=(*ROWS, *ATTENTION, *_CONTROL, *_GRAPH),
        only={"fast": rf"{_PLAIN}|mul_m[mv]_(ext_)?(f16|f32)_f32|{cache}", "check": f"{rows}|{cache}"},
    )


def target(variant: str) -> str:
    """The library that is loaded as a backend."""
    return f"metal-host-{variant}"


def missing() -> str:
    """What the host needs and this machine lacks, or an empty string."""
    if toolchain.clang_for_metal() is None:
        return "the Metal host needs clang++-19"
    return "" if toolchain.symbolizer_for_metal() else "the Metal host needs llvm-symbolizer of LLVM 19"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A llama.cpp tree with its built libraries. `key` changes whenever one of them does."""

    tree: Path
    libraries: Path
    key: str


@dataclass(frozen=True, kw_only=True)
class Builder:
    """Builds a host in one folder."""

    project: Path
    folder: Path
    tools: Tools
    jobs: int
    environment: Mapping[str, str | None]

    def build(self, recipe: Recipe, source: Source, tell: Callable[[str], None], step: Callable[[str], None]) -> Path:
        """The folder with the libraries of `recipe`; `tell` hears why it is compiled, `step` each line of Ninja.

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
    what = f"The Metal host does not build: {failure.what}"
    return BuildError(what, where=failure.where or str(log), remedy=f"The whole log is {log}")


def inputs(project: Path, recipe: Recipe, key: str, clang: str) -> dict[str, str]:
    """What a host is made from, by name."""
    return {
        "the tree or its libraries": key,
        "the host's own sources": digest(project),
        "what is compiled": hashlib.sha256(
            repr((recipe.variants, recipe.sources, sorted(recipe.only.items()), recipe.targets)).encode()
        ).hexdigest()[:16],
        "the compiler": clang,
    }


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Why a host is built (again), or an empty string."""
    if not old:
        return "it was not built yet"
    changed = [name for name in new if old.get(name) != new[name]]
    return f"{', '.join(changed)} changed" if changed else ""


def _read(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(found) if isinstance(found, dict) else {}


def digest(project: Path) -> str:
    """Of what is compiled or run while compiling; texts and suppressions are read at run time."""
    digest = hashlib.sha256()
    for path in sorted(project.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".md", ".txt"):
            digest.update(str(path.relative_to(project)).encode() + b"\0" + path.read_bytes())
    digest.update((project / "CMakeLists.txt").read_bytes())
    return digest.hexdigest()[:16]
