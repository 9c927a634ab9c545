"""Check that bindings and library match, before the bindings are imported and before a struct is passed."""

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

#: The result of `llama_context_default_params` in every supported base; a field that moved has another value.
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
    """Return the libllama of a folder. Raises LoadError if there is none."""
    for suffix in (".dylib", ".so") if sys.platform == "darwin" else (".so",):
        found = folder / f"libllama{suffix}"
        if found.exists():
            return found
    raise LoadError("The library folder contains no libllama.", where=str(folder), remedy=_REBUILD)


def open_library(path: Path) -> ctypes.CDLL:
    """Load a library. Raises LoadError with the reason of the system's loader."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise LoadError(f"The library does not load: {error}", where=str(path), remedy=_loader_remedy(path)) from error


def _loader_remedy(path: Path) -> str:
    arch = binary_arch(path)
    mine = f"{struct.calcsize('P') * 8}-bit Python on {sys.platform}"
    if arch:
        return f"The file is built for {arch}; this is a {mine}. Run `tqforge doctor`, then rebuild."
    return _REBUILD


def binary_arch(path: Path) -> str:
    """Return the architecture of an ELF or Mach-O file, or an empty string for any other file."""
    head = path.read_bytes()[:20]
    if head[:4] == b"\x7fELF" and len(head) == 20:
        machine = struct.unpack_from("<H", head, 18)[0]
        return {62: "x86_64", 183: "arm64", 40: "arm", 3: "x86"}.get(machine, f"ELF machine {machine}")
    if head[:4] == b"\xcf\xfa\xed\xfe":
        cpu = struct.unpack_from("<i", head, 4)[0]
        return {0x01000007: "x86_64", 0x0100000C: "arm64"}.get(cpu, f"Mach-O machine {cpu:#x}")
    return ""


def declared_symbols(bindings: Path) -> list[str]:
    """Return the functions that the bindings look up when imported, without importing them."""
    source = bindings / "llama_cpp" / "llama_cpp.py"
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise LoadError(f"The Python bindings cannot be read: {error.strerror}.", where=str(source)) from error
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names += [name for call in node.decorator_list if (name := _bound_name(call))]
    return names


def _bound_name(call: ast.expr) -> str:
    """Return the symbol of `@ctypes_function("symbol", ...)`, or an empty string with `enabled=False`."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "ctypes_function"):
        return ""
    off = any(
        word.arg == "enabled" and isinstance(word.value, ast.Constant) and not word.value.value
        for word in call.keywords
    )
    first = call.args[0] if call.args else None
    return str(first.value) if isinstance(first, ast.Constant) and not off else ""


def check_symbols(library: ctypes.CDLL, names: Iterable[str], where: Path) -> int:
    """Return the number of declared functions. Raises LoadError naming those that the library does not export."""
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
    """Return mapped libraries of ggml and llama.cpp outside `folder`; none if the file `maps` does not exist."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    mapped = {Path(line.split(maxsplit=5)[5]) for line in lines if "/lib" in line and len(line.split(maxsplit=5)) == 6}
    ours = sorted(path for path in mapped if path.name.startswith(("libggml", "libllama")))
    return [path for path in ours if path.parent.resolve() != folder.resolve()]


def check_context_defaults(params: Any) -> int:
    """Return the number of default context parameters that were checked. Raises LoadError if one differs."""
    fields = {name for name, *_ in params._fields_}
    known = [name for name in CONTEXT_DEFAULTS if name in fields]
    wrong = [name for name in known if getattr(params, name) != CONTEXT_DEFAULTS[name]]
    if wrong or not known:
        seen = ", ".join(f"{name} = {getattr(params, name)}, not {CONTEXT_DEFAULTS[name]}" for name in wrong[:4])
        raise LoadError(f"The layout of llama_context_params differs from the bindings: {seen}.", remedy=_REBUILD)
    return len(known)


def check_origin(folder: Path) -> None:
    """Raise LoadError if a library of llama.cpp was loaded from elsewhere than `folder`."""
    foreign = loaded_elsewhere(folder, Path("/proc/self/maps"))
    if foreign:
        raise LoadError(
            f"Loading the library of {folder} also loaded {foreign[0].name} from another build.",
            where=str(foreign[0]),
            remedy="Put all libraries of a build into one folder.",
        )
