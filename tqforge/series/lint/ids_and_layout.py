"""Lint rules for the patched tree: type ids and the block layout."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tqforge.core import tq3_0
from tqforge.core.cache_types import TQ3_0
from tqforge.series.lint.subject import Finding, Rule, Skipped, SourceTree, Subject

HEADER, COMMON, GGUF_CONSTANTS = "ggml/include/ggml.h", "ggml/src/ggml-common.h", "gguf-py/gguf/constants.py"
_ENUMS = ("ggml_type", "ggml_ftype", "llama_ftype")
_HEADERS = {"ggml_type": HEADER, "ggml_ftype": HEADER, "llama_ftype": "include/llama.h"}
_SIZES = {
    "ggml_half": 2,
    "ggml_half2": 4,
    "uint8_t": 1,
    "int8_t": 1,
    "uint16_t": 2,
    "int16_t": 2,
    "uint32_t": 4,
    "float": 4,
}
_FIELD = re.compile(r"^\s*(\w+)\s+(\w+)\s*(?:\[([^\]]+)\])?\s*;", re.M)


def enum_values(text: str, name: str) -> dict[str, int]:
    """Return the members of a C enum with their values."""
    found = re.search(rf"enum\s+{name}\s*\{{(.*?)\}}", text, re.S)
    values: dict[str, int] = {}
    if not found:
        return values
    following = 0
    for line in re.sub(r"//[^\n]*|/\*.*?\*/", "", found[1], flags=re.S).split(","):
        if member := re.match(r"\s*(\w+)\s*(?:=\s*(-?\w+))?\s*$", line):
            value = following if member[2] is None else _number(member[2], values)
            values[member[1]] = value
            following = value + 1
    return values


def _number(text: str, known: dict[str, int]) -> int:
    return known[text] if text in known else int(text, 0)


def new_values(before: SourceTree, after: SourceTree, enum: str) -> dict[str, int]:
    """Return the members that the series adds to an enum, without COUNT."""
    old = enum_values(before.read(_HEADERS[enum]) or "", enum)
    new = enum_values(after.read(_HEADERS[enum]) or "", enum)
    return {name: value for name, value in new.items() if name not in old and not name.endswith("COUNT")}


def ids_are_free(subject: Subject) -> Iterator[Finding | Skipped]:
    """Check new enum values for collisions: with the base, imported snapshots, known forks, upstream's next ids."""
    if subject.before is None or subject.after is None:
        yield Skipped(subject.no_tree)
        return
    for enum in _ENUMS:
        for name, value in new_values(subject.before, subject.after, enum).items():
            yield from _collisions(subject, enum, name, value)
    yield from _count_is_last(subject.after)


def _collisions(subject: Subject, enum: str, name: str, value: int) -> Iterator[Finding]:
    remedy = f"Choose an id far from upstream's and listed in no fork, for example {value + 20}."
    for label, tree in {"the base": subject.before, **subject.snapshots}.items():
        taken = enum_values(tree.read(_HEADERS[enum]) or "", enum) if tree else {}
        for other, used in taken.items():
            if used == value and other != name and not other.endswith("COUNT"):
                yield Finding("", f"{name} = {value} is {other} in {label}", remedy)
        last = max((used for other, used in taken.items() if not other.endswith("COUNT")), default=-1)
        if enum == "ggml_type" and last < value <= last + subject.settings.clearance:
            yield Finding(
                "", f"{name} = {value} is among upstream's next {subject.settings.clearance} ids after {label}", remedy
            )
    for fork in subject.settings.forks:
        if enum == "ggml_type" and value in fork.ids:
            yield Finding("", f"{name} = {value} is used by {fork.name}", remedy)


def _count_is_last(after: SourceTree) -> Iterator[Finding]:
    values = enum_values(after.read(HEADER) or "", "ggml_type")
    count = values.pop("GGML_TYPE_COUNT", None)
    if values and count != max(values.values()) + 1:
        yield Finding(
            "", f"GGML_TYPE_COUNT is {count}, the largest type is {max(values.values())}", "Set COUNT to that plus one."
        )


def block_layout(text: str, type_name: str) -> list[tuple[str, int]] | None:
    """Return the fields of `block_<type>` in ggml-common.h with their bytes; None without such a block."""
    found = re.search(rf"typedef struct \{{([^{{}}]*)\}} block_{type_name};", text)
    if not found:
        return None
    defines = dict(re.findall(r"#define\s+(QK\w+)\s+(\d+)", text))
    fields, body = [], re.sub(r"//[^\n]*", "", found[1])
    if _FIELD.sub("", body).strip():
        return None
    for kind, name, count in _FIELD.findall(body):
        expression = re.sub(r"QK\w+", lambda match: defines.get(match[0], "0"), count or "1")
        if not re.fullmatch(r"[\d\s*/+-]+", expression) or kind not in _SIZES:
            return None
        fields.append((name, _SIZES[kind] * _evaluate(expression)))
    return fields


def _evaluate(expression: str) -> int:
    """Evaluate integer arithmetic with + - * / as C does."""
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", expression.replace(" ", "")):
        value = 1
        for operator, factor in re.findall(r"([*/]?)(\d+)", term):
            value = value // int(factor) if operator == "/" else value * int(factor)
        total += -value if sign == "-" else value
    return total


def layouts_agree(subject: Subject) -> Iterator[Finding | Skipped]:
    """Check that the block has the same layout in C, Metal, gguf-py and the NumPy reference."""
    if subject.after is None:
        yield Skipped(subject.no_tree)
        return
    common = subject.after.read(COMMON) or ""
    fields = block_layout(common, TQ3_0)
    if fields is None:
        yield Finding(
            "", f"block_tq3_0 is not in {COMMON}, or its layout cannot be read", "Use plain fields and arrays only."
        )
        return
    wanted = [("d", 2), ("qs", tq3_0.BLOCK_BYTES - 2)]
    if fields != wanted:
        yield Finding("", f"block_tq3_0 is {fields} in C and {wanted} in the NumPy reference", "Make them equal.")
    size = re.search(r"GGMLQuantizationType\.TQ3_0:\s*\((\d+),\s*([^)]*)\)", subject.after.read(GGUF_CONSTANTS) or "")
    found = (int(size[1]), _evaluate(size[2])) if size else None
    if found != (tq3_0.BLOCK, tq3_0.BLOCK_BYTES):
        yield Finding(
            "", f"gguf-py gives {found} for TQ3_0, not {(tq3_0.BLOCK, tq3_0.BLOCK_BYTES)}", "Make them equal."
        )
    for path in subject.after.names("ggml/src/ggml-metal"):
        text = subject.after.read(path) or ""
        if re.search(r"struct\s+block_tq3_0|\}\s*block_tq3_0\s*;", text):
            yield Finding("", f"{path} defines a block_tq3_0 of its own", "Use the one in ggml-common.h.")


RULES: tuple[tuple[str, Rule], ...] = (("type-ids", ids_are_free), ("block-layout", layouts_agree))
