"""Check address spaces by parsing the kernel sources as C++ for OpenCL, which has the same spaces under other names.

`prepare` makes sources that clang can parse with `-x clcpp`; clang itself then refuses a pointer of one space where
another is wanted. What it accepts but Metal does not, a pointer or reference without any space, shows in clang's dump
of the syntax tree: `unqualified` finds it there. README.md says what the pass cannot see.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import rewrite

CLANG_OPTIONS = (
    *(
        "-x",
        "clcpp",
        "-cl-std=CLC++2021",
        "-cl-no-stdinc",
        "-target",
        "spir64",
        "-w",
        "-fsyntax-only",
        "-ferror-limit=200",
    ),
    *("-Xclang", "-cl-single-precision-constant"),
)
INSTANTIATION = re.compile(rf"^template\s*{rewrite.HOST_NAME}\s*kernel\s+(?P<type>\w+)\s+(?P<function>[^;]+);", re.M)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]", re.S)
FUNCTION_PARAMETER = re.compile(r"\bvoid\s*\(\s*\*\s*(?P<name>\w+)\s*\)\s*\(")
SHARED_RULES = ("function-constant", "threadgroup-variable")


def _instantiation(match: re.Match[str]) -> str:
    function = rewrite.one_line(match["function"])
    result = "void" if "(" in function else match["type"]  # a repeated signature names the result itself
    return f"template {result} {function};" + rewrite.newlines(match)


def prepare(text: str, instantiate: bool = True) -> str:
    """Prepare one source, line by line. Without instantiations, only the templates themselves are checked."""
    text = INSTANTIATION.sub(_instantiation if instantiate else rewrite.newlines, text)
    for rule in rewrite.RULES:
        if rule.name in SHARED_RULES:
            text = rule.pattern.sub(rule.replace, text)
    text = ATTRIBUTE.sub(rewrite.newlines, text)
    return FUNCTION_PARAMETER.sub(r"void (&\g<name>)(", text)  # OpenCL has no pointers to functions; references do


def prepare_tree(kernels: Path, out: Path, instantiate: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for source in sorted(kernels.iterdir()):
        text = f'#line 1 "{source}"\n' + prepare(source.read_text(encoding="utf-8"), instantiate)
        (out / source.name).write_text(text, encoding="utf-8")


@dataclass(frozen=True, order=True)
class Unqualified:
    """A declaration or cast whose pointer or reference has no address space."""

    file: str
    line: int
    what: str


NODE = re.compile(
    r"(?P<kind>(?:Parm|Var|Field|Typedef|TypeAlias|Function|CXXMethod)\w*Decl|CStyleCastExpr|CXXFunctionalCastExpr)"
    r" 0x[0-9a-f]+"
)
LOCATION = re.compile(r"(?P<file>/[^\s<>:,]+):(?P<fline>\d+):\d+|\bline:(?P<line>\d+):\d+")
SPACE = re.compile(r"\b__(?:global|local|private|constant)\b")
TYPE = re.compile(r"'(?P<type>[^']*)'")
NAMED = re.compile(r"(?:col|line):[\d:]+ (?:used |referenced |implicit |constexpr )*(?P<name>\w+) '")


def _located(dump: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Yield every line of the dump with its file and line: clang prints only what changes."""
    file, line = "", 0
    for text in dump:
        head = text.split("'", 1)[0]
        for match in LOCATION.finditer(head):
            if match["file"]:
                file, line = match["file"], int(match["fline"])
            else:
                line = int(match["line"])
        yield text, file, line


def _is_unqualified(kind: str, text: str) -> bool:
    """Return whether a type lacks a space: clang prints `__generic`, or nothing in a dependent type."""
    found = TYPE.search(text)
    if found is None:
        return False
    declared = found["type"]
    if kind in {"FunctionDecl", "CXXMethodDecl"}:
        declared = declared.split("(", 1)[0]  # parameters have nodes of their own
    elif "Cast" not in kind and not NAMED.search(text):
        return False  # parameters of members that the compiler adds have no names
    return any(_lacks_space(part) for part in _pointers(declared))


def _pointers(declared: str) -> list[str]:
    """Return the type itself, or the parameter types of a function type that is a template argument."""
    function = re.fullmatch(r"[^(]*\([*&]\)\((?P<parameters>.*)\)", declared)
    return function["parameters"].split(", ") if function else [declared]


def _lacks_space(declared: str) -> bool:
    pointee = re.match(r"[^*&]*(?=[*&])", declared)
    return pointee is not None and SPACE.search(pointee[0]) is None


def unqualified(dump: Iterable[str], kernels: Path) -> list[Unqualified]:
    """Return the pointers without an address space in files of `kernels`, from clang's text dump."""
    found = set()
    for text, file, line in _located(dump):
        node = NODE.search(text)
        if node is None or not file.startswith(f"{kernels}/") or " implicit " in text.split("'", 1)[0]:
            continue
        if _is_unqualified(node["kind"], text):
            type_found = TYPE.search(text)
            found.add(Unqualified(Path(file).name, line, type_found["type"] if type_found else ""))
    return sorted(found)


ARTEFACT = re.compile(r"incompatible operand types \('[^']*vec<[^']*' and '[^']*vec<[^']*'\)")


ERROR = re.compile(r"\berror: ")  # a missing header is a `fatal error`, and a wrong option has no place in a file


def errors(messages: str) -> list[str]:
    """Return clang's errors, except one that is valid in Metal: `condition ? device vector : vector`."""
    return [m for m in messages.splitlines() if ERROR.search(m) and not ARTEFACT.search(m)]


def main(kernels: str, out: str, mode: str = "instantiate") -> int:
    prepare_tree(Path(kernels), Path(out), mode == "instantiate")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
