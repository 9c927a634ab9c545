"""Check that every (operation, type, head size) that Metal's `supports_op` allows for a new type has its kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from tqforge.series.lint.ids_and_layout import HEADER, enum_values, new_values
from tqforge.series.lint.subject import Finding, Rule, Skipped, SourceTree, Subject
from tqforge.series.lint.supports_op import closures, syntax
from tqforge.series.lint.supports_op.closures import CFunction, Functions
from tqforge.series.lint.supports_op.syntax import CError
from tqforge.series.lint.supports_op.tuning import Variants

FOLDER = "ggml/src/ggml-metal"
DEVICE = f"{FOLDER}/ggml-metal-device.m"
DISPATCH = f"{FOLDER}/ggml-metal-ops.cpp"
TUNING = f"{FOLDER}/ggml-metal-tuning.cpp"
TRAITS = "ggml/src/ggml.c"
_SUPPORTS, _MUL_MAT = "ggml_metal_device_supports_op", "ggml_metal_supports_mul_mat_op"
_USE_F16 = "ggml_metal_op_flash_attn_ext_use_kv_f16"
_HAS_HEAD = "ggml_metal_op_flash_attn_ext_has_head"
_EMPTY = {"GGML_OP_NONE", "GGML_OP_RESHAPE", "GGML_OP_VIEW", "GGML_OP_TRANSPOSE", "GGML_OP_PERMUTE"}
_COPIES = ("GGML_OP_CPY", "GGML_OP_DUP", "GGML_OP_CONT")
_BLOCK = 32
_REMEDY = "Add the instantiation, or let supports_op return false."


def kernel_names(tree: SourceTree) -> set[str]:
    """Return the names of all kernels in the kernel sources."""
    names: set[str] = set()
    for path in tree.names(FOLDER):
        if path.endswith((".metal", ".h")):
            names.update(re.findall(r'host_name\(\s*"([^"]+)"\s*\)', tree.read(path) or ""))
    return names


def short(type_name: str) -> str:
    """Return a type as the kernels spell it: `GGML_TYPE_Q4_K` is `q4_K`."""
    return re.sub(r"_k\b", "_K", type_name.removeprefix("GGML_TYPE_").lower())


def _tensor(kind: str, size: int = 256, sources: Iterable[Any] = (), op: str = "") -> dict[str, Any]:
    padded = [*sources, *([None] * 10)][:10]
    return {"type": kind, "ne": [size, 32, 8, 1], "nb": [1, size, size, size], "src": padded, "op": op}


def is_stored(tree: SourceTree, kind: str) -> bool:
    """Return whether tensors have that type; Q8_K, for example, only holds the second operand of dot products."""
    entry = re.search(rf"\[{kind}\]\s*=\s*\{{(.*?)\n    \}},", tree.read(TRAITS) or "", re.DOTALL)
    return entry is None or ".to_float" in entry[1]


class Answers:
    """The answers of `supports_op`, found by running it.

    `dispatch` decides which attention goes through f16 copies, `tuning` in which variants of the vec kernels.
    """

    def __init__(self, text: str, dispatch: str = "", tuning: str = "") -> None:
        functions: dict[str, Any] = {"ggml_op_is_empty": lambda op: op in _EMPTY}
        if mul_mat := _optional(text, _MUL_MAT):
            names = ("has_simdgroup_reduction", "op", "src0_f16_has_mv", "mm_path")
            functions[_MUL_MAT] = lambda *values: mul_mat(dict(zip(names, values, strict=False)))
        functions["ggml_metal_op_mul_mat_use_fwht"] = lambda *_: False
        if heads := _optional(dispatch, _HAS_HEAD):
            functions[_HAS_HEAD] = lambda dk, dv: heads({"dk": dk, "dv": dv})
        self._supports = closures.load(text, _SUPPORTS, functions)
        if heads:
            text += syntax.text(syntax.body(dispatch, _HAS_HEAD))
        #: The function can tell only those types apart that it names; one of the others stands for all of them.
        self.named = set(re.findall(r"\bGGML_TYPE_\w+", text))
        self.sizes = sorted({int(number) for number in re.findall(r"\b(\d{2,3})\b", text) if int(number) % 8 == 0})

        self._use_f16 = _optional(dispatch, _USE_F16, {"ggml_metal_op_flash_attn_ext_use_vec": lambda _: False})
        self.variants = Variants(tuning, dispatch)

    def allow(self, op: dict[str, Any]) -> bool:
        return bool(self._supports({"op": op, "dev": {"props": {}}}))

    def needs_matrix_kernel(self, op: dict[str, Any]) -> bool:
        """Return whether attention with few rows (20, the fewest) needs a matrix kernel of the type's own."""
        return self._use_f16 is None or not self._use_f16({"op": op})


def _optional(text: str, name: str, functions: Functions | None = None) -> CFunction | None:
    try:
        return closures.load(text, name, functions)
    except CError:
        return None


def required(answers: Answers, kind: str, types: list[str], ops: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield what is allowed for a type, in words, with the kernels that must exist for it."""
    for op, other in product(_COPIES, types):
        for source, target in {(kind, other), (other, kind)}:
            if answers.allow(_tensor(target, op=op, sources=[_tensor(source)])):
                yield (
                    f"{op.removeprefix('GGML_OP_')} {short(source)} to {short(target)}",
                    [f"kernel_cpy_{short(source)}_{short(target)}"],
                )
    if answers.allow(
        _tensor("GGML_TYPE_F32", op="GGML_OP_GET_ROWS", sources=[_tensor(kind), _tensor("GGML_TYPE_I32")])
    ):
        yield f"GET_ROWS {short(kind)}", [f"kernel_get_rows_{short(kind)}"]
    for source, index in product(("GGML_TYPE_F32", "GGML_TYPE_F16"), ("GGML_TYPE_I32", "GGML_TYPE_I64")):
        if answers.allow(_tensor(kind, op="GGML_OP_SET_ROWS", sources=[_tensor(source), _tensor(index)])):
            yield (
                f"SET_ROWS {short(source)} to {short(kind)} by {short(index)}",
                [f"kernel_set_rows_{short(source)}_{short(index)}_{short(kind)}"],
            )
    yield from _attention(answers, kind, types)
    yield from _others(answers, kind, ops)


def _attention(answers: Answers, kind: str, types: list[str]) -> Iterator[tuple[str, list[str]]]:
    pairs = [
        (kind, kind),
        *((kind, other) for other in types if other != kind),
        *((o, kind) for o in types if o != kind),
    ]
    for (k, v), dk, dv in product(pairs, answers.sizes, answers.sizes):
        if (k == kind and dk % _BLOCK) or (v == kind and dv % _BLOCK):
            continue  # such a tensor cannot exist
        query = _tensor("GGML_TYPE_F32", dk) | {"ne": [dk, 20, 8, 1]}
        sources = [query, _tensor(k, dk), _tensor(v, dv), _tensor("GGML_TYPE_F16")]
        op = _tensor("GGML_TYPE_F32", dv, op="GGML_OP_FLASH_ATTN_EXT", sources=sources)
        if not answers.allow(op):
            continue
        sizes = f"dk{dk}_dv{dv}"
        name = short(k) if k == v else f"{short(k)}_{short(v)}"
        kernels = [f"kernel_flash_attn_ext_f16_{sizes}", f"kernel_flash_attn_ext_kv_{short(kind)}_f16"]
        if dk % _BLOCK == 0:
            suffixes = answers.variants.suffixes((k, v), dk, dv)
            kernels += [f"kernel_flash_attn_ext_vec_{name}_{sizes}{suffix}" for suffix in suffixes]
        kernels += [f"kernel_flash_attn_ext_{name}_{sizes}"] if k == v and answers.needs_matrix_kernel(op) else []
        yield f"FLASH_ATTN_EXT K {short(k)} ({dk}), V {short(v)} ({dv})", kernels


def _others(answers: Answers, kind: str, ops: list[str]) -> Iterator[tuple[str, list[str]]]:
    known = {*_COPIES, "GGML_OP_GET_ROWS", "GGML_OP_SET_ROWS", "GGML_OP_FLASH_ATTN_EXT", *_EMPTY}
    for op in ops:
        if op in known:
            continue
        sources = [_tensor(kind), *(_tensor("GGML_TYPE_F32") for _ in range(6))]
        for target in ("GGML_TYPE_F32", kind):
            if answers.allow(_tensor(target, op=op, sources=sources)):
                word = op.removeprefix("GGML_OP_").lower()
                kernel = f"kernel_mul_mv_{short(kind)}_f32" if word == "mul_mat" else f"kernel_{word}_{short(kind)}"
                yield f"{op.removeprefix('GGML_OP_')} with {short(kind)} as first source", [kernel]


def advertised_is_instantiated(subject: Subject) -> Iterator[Finding | Skipped]:
    """Run supports_op for every operation, type pair and head size, and look for the kernels."""
    if subject.before is None or subject.after is None:
        yield Skipped(subject.no_tree)
        return
    new = new_values(subject.before, subject.after, "ggml_type")
    kinds = [name for name in new if name.startswith("GGML_TYPE_") and is_stored(subject.after, name)]
    device, header = subject.after.read(DEVICE), subject.after.read(HEADER) or ""
    if device is None or not kinds:
        yield Skipped(f"{DEVICE} is not in the tree" if device is None else "the series adds no type")
        return
    try:
        answers = Answers(device, subject.after.read(DISPATCH) or "", subject.after.read(TUNING) or "")
        types = [name for name in enum_values(header, "ggml_type") if not name.endswith("COUNT")]
        ops = [name for name in enum_values(header, "ggml_op") if not name.endswith("COUNT")]
        kernels = kernel_names(subject.after)
        for kind in kinds:
            wanted = dict(required(answers, kind, types, ops))
            for what, name in ((what, name) for what, names in wanted.items() for name in names):
                if name not in kernels:
                    yield Finding("", f"Metal's supports_op allows {what}, but there is no {name}", _REMEDY)
    except CError as error:
        yield Skipped(f"supports_op cannot be run: {error}")


RULES: tuple[tuple[str, Rule], ...] = (("metal-kernels", advertised_is_instantiated),)
