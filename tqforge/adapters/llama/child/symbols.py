"""Do bindings and library belong together? Asked before the bindings are imported, and before a struct is passed."""

from __future__ import annotations

import ast
import ctypes
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tqforge.errors import LoadError

_REBUILD = "Run `tqforge build`; bindings and library must come from one base."

#: What `llama_context_default_params` returns in every base tqforge knows. A field that moved shows up here.
CONTEXT_DEFAULTS: dict[str, float | bool] = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    "n_seq_max": 1,
    "n_rs_seq": 0,
    "n_outputs_max": 0,
    "n_outputs_max_per_seq": 1,
    "n_threads": 4,
    "n_threads_batch": 4,
    "ctx_type": 0,
    "rope_scaling_type": -1,
    "pooling_type": -1,
    "attention_type": -1,
    "flash_attn_type": -1,
    "rope_freq_base": 0.0,
    "rope_freq_scale": 0.0,
    "yarn_ext_factor": -1.0,
    "yarn_attn_factor": -1.0,
    "yarn_beta_fast": -1.0,
    "yarn_beta_slow": -1.0,
    "yarn_orig_ctx": 0,
    "defrag_thold": -1.0,
    "type_k": 1,
    "type_v": 1,
    "embeddings": False,
    "offload_kqv": True,
    "no_perf": True,
    "op_offload": True,
    "swa_full": True,
    "kv_unified": False,
    "n_samplers": 0,
}


def library_file(folder: Path) -> Path:
    """`libllama` in that folder. Raises LoadError when there is none."""
    for suffix in (".dylib", ".so") if sys.platform == "darwin" else (".so",):
        found = folder / f"libllama{suffix}"
        if found.exists():
            return found
    raise LoadError("There is no libllama in the build's library folder.", where=str(folder), remedy=_REBUILD)


def open_library(path: Path) -> ctypes.CDLL:
    """Load it, or say why the system's loader refused."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise LoadError(f"The library does not load: {error}", where=str(path), remedy=_loader_remedy(path)) from error


def _loader_remedy(path: Path) -> str:
    arch = binary_arch(path)
    mine = f"{struct.calcsize('P') * 8}-bit Python on {sys.platform}"
    if arch:
        return f"The file is built for {arch}; this is a {mine}. Compare both with `tqforge doctor`, then build again."
    return _REBUILD


def binary_arch(path: Path) -> str:
    """The machine an ELF or Mach-O file was built for; empty when it is neither."""
    head = path.read_bytes()[:20]
    if head[:4] == b"\x7fELF" and len(head) == 20:
        machine = struct.unpack_from("<H", head, 18)[0]
        return {62: "x86_64", 183: "arm64", 40: "arm", 3: "x86"}.get(machine, f"ELF machine {machine}")
    if head[:4] == b"\xcf\xfa\xed\xfe":
        cpu = struct.unpack_from("<i", head, 4)[0]
        return {0x01000007: "x86_64", 0x0100000C: "arm64"}.get(cpu, f"Mach-O machine {cpu:#x}")
    return ""


def declared_symbols(bindings: Path) -> list[str]:
    """The functions that the ctypes bindings bind at import, read without importing them."""
    source = bindings / "llama_cpp" / "llama_cpp.py"
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise LoadError(f"The Python bindings are not there: {error.strerror}.", where=str(source)) from error
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names += [name for call in node.decorator_list if (name := _bound_name(call))]
    return names


def _bound_name(call: ast.expr) -> str:
    """The symbol of `@ctypes_function("symbol", ...)` unless it is switched off by `enabled=False`."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "ctypes_function"):
        return ""
    off = any(
        word.arg == "enabled" and isinstance(word.value, ast.Constant) and not word.value.value
        for word in call.keywords
    )
    first = call.args[0] if call.args else None
    return str(first.value) if isinstance(first, ast.Constant) and not off else ""


def check_symbols(library: ctypes.CDLL, names: Iterable[str], where: Path) -> int:
    """How many declared functions are exported. Raises LoadError naming those that are missing."""
    names = list(names)
    missing = [name for name in names if not hasattr(library, name)]
    if missing or not names:
        listed = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        raise LoadError(
            f"The library lacks functions that the bindings declare: {listed or 'none are declared'}.",
            where=str(where),
            remedy=_REBUILD,
        )
    return len(names)


def loaded_elsewhere(folder: Path, maps: Path) -> list[Path]:
    """Libraries of ggml and llama.cpp in a process's memory map that are not in `folder`; none without such a map."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    mapped = {Path(line.split(maxsplit=5)[5]) for line in lines if "/lib" in line and len(line.split(maxsplit=5)) == 6}
    ours = sorted(path for path in mapped if path.name.startswith(("libggml", "libllama")))
    return [path for path in ours if path.parent.resolve() != folder.resolve()]


def check_context_defaults(params: Any) -> int:
    """How many fields of the default context parameters hold the value they must. Raises LoadError on drift."""
    fields = {name for name, *_ in params._fields_}
    known = [name for name in CONTEXT_DEFAULTS if name in fields]
    wrong = [name for name in known if getattr(params, name) != CONTEXT_DEFAULTS[name]]
    if wrong or not known:
        seen = ", ".join(f"{name} = {getattr(params, name)}, not {CONTEXT_DEFAULTS[name]}" for name in wrong[:4])
        raise LoadError(f"llama_context_params has another layout than the bindings think: {seen}.", remedy=_REBUILD)
    return len(known)


def check_origin(folder: Path) -> None:
    """Raise LoadError if a library of llama.cpp was loaded from elsewhere than `folder`."""
    foreign = loaded_elsewhere(folder, Path("/proc/self/maps"))
    if foreign:
        raise LoadError(
            f"With the library of {folder} came {foreign[0].name} of another build.",
            where=str(foreign[0]),
            remedy="Put all libraries of that build into one folder.",
        )
