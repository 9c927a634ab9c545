"""Turn llama.cpp's Metal kernel sources into C++ for clang, line by line.

Most of Metal is handled by macros and classes (include/). What a preprocessor cannot do is done here, by the rules
below. Every rule keeps line numbers, says why it exists, and must match at least `minimum` times over the whole tree;
what is left of the constructs that the rules exist for is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
LEFTOVERS = re.compile(
    r"host_name\s*\(|function_constant\s*\(|\[\[\s*threadgroup\s*\(|(?m:^\s+threadgroup\s+\w+\s+\w+\s*[\[;])"
)


class RewriteError(Exception):
    """The kernel sources contain something that no rule handles."""


@dataclass(frozen=True)
class Rule:
    name: str
    reason: str
    pattern: re.Pattern[str]
    replace: Callable[[re.Match[str]], str]
    minimum: int


def newlines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def one_line(text: str) -> str:
    return " ".join(text.split())


def instantiate(match: re.Match[str]) -> str:
    name, function_type, function = match["name"], match["type"], one_line(match["function"])
    return f"template {function_type} {function}; METAL_EMULATOR_KERNEL({name}, {function})" + newlines(match)


def instantiate_signature(match: re.Match[str]) -> str:
    return f"METAL_EMULATOR_KERNEL({match['name']}, {one_line(match['function'])})" + newlines(match)


def constant(match: re.Match[str]) -> str:
    words = match["type"], match["name"], one_line(match["index"])
    return f"METAL_EMULATOR_CONSTANT({', '.join(words)});" + newlines(match)


def variable(match: re.Match[str]) -> str:
    words = one_line(match["type"]), match["name"], one_line(match["dims"])
    return f"{match['indent']}METAL_EMULATOR_GROUP_VARIABLE({', '.join(words)});" + newlines(match)


HOST_NAME = r'\[\[\s*host_name\(\s*(?P<name>"[^"]+")\s*\)\s*\]\]'

RULES = (
    Rule(
        "instantiation",
        "clang knows no host_name; the instantiation also registers the kernel under its name",
        re.compile(rf"^template\s*{HOST_NAME}\s*kernel\s+(?P<type>\w+)\s+(?P<function>[^;(]+);", re.M),
        instantiate,
        800,
    ),
    Rule(
        "instantiation-signature",
        "an instantiation that repeats the signature would repeat default arguments: registering alone instantiates it",
        re.compile(rf"^template\s*{HOST_NAME}\s*kernel\s+\w+\s+(?P<function>[^;(]+)\([^;]*\)\s*;", re.M),
        instantiate_signature,
        10,
    ),
    Rule(
        "function-constant",
        "a function constant becomes a variable of its file that the executor sets before each dispatch",
        re.compile(
            r"^constant\s+(?P<type>\w+)\s+(?P<name>\w+)\s*\[\[\s*function_constant\((?P<index>[^)]*)\)\s*\]\]\s*;", re.M
        ),
        constant,
        50,
    ),
    Rule(
        "threadgroup-argument",
        "`threadgroup` is a macro without arguments (an address space), so [[threadgroup(N)]] needs another name",
        re.compile(r"\[\[\s*threadgroup\((\d+)\)\s*\]\]"),
        lambda m: f"[[metal_emulator_group_memory({m[1]})]]",
        30,
    ),
    Rule(
        "threadgroup-variable",
        "a threadgroup variable inside a kernel is shared by its threads and watched by the executor",
        re.compile(
            r"^(?P<indent>[ \t]+)threadgroup\s+(?P<type>\w+(?:\s+\w+)*?)\s+(?P<name>\w+)\s*"
            r"(?P<dims>(?:\[[^\]]*\]\s*)*);",
            re.M,
        ),
        variable,
        10,
    ),
    Rule(
        "function-typedef",
        "attributes become default arguments, which the parameters of a typedef may not have",
        re.compile(r"^typedef\s+void\s*\(\w+\)\s*\([^;]*?\)\s*;", re.M),
        lambda m: re.sub(r"\[\[.*?\]\]", "", m[0]),
        5,
    ),
    Rule(
        "kernel-host-name",
        "the name of a plain kernel is taken when it is registered (below)",
        re.compile(rf"^{HOST_NAME}(?=\s*kernel\s+void)", re.M),
        newlines,
        0,
    ),
)

PLAIN_KERNEL = re.compile(rf"^(?:{HOST_NAME}\s*)?kernel\s+void\s+(?P<function>\w+)\s*\(", re.M)
PLAIN_MINIMUM = 50  # plain kernels are registered at the end of their file: a line is added there, none moves
UNROLL = '_Pragma("clang loop unroll(full)")'


def plain_kernels(text: str) -> list[tuple[str, str]]:
    """Return host name and function of every kernel that is not a template."""
    return [
        (match["name"] or f'"{match["function"]}"', match["function"])
        for match in PLAIN_KERNEL.finditer(text)
        if not COMMENT.sub("", text[: match.start()]).rstrip().endswith(">")
    ]


def drop_instantiations(text: str, only: re.Pattern[str] | None) -> str:
    """Blank the instantiations whose host name does not match `only`, to save compile time."""
    if only is None:
        return text
    pattern = re.compile(rf"^template\s*{HOST_NAME}[^;]*;", re.M)
    return pattern.sub(lambda m: m[0] if only.search(m["name"]) else newlines(m), text)


def leftovers(text: str, name: str) -> list[str]:
    code = COMMENT.sub(newlines, text)
    return [f"{name}:{code.count(chr(10), 0, m.start()) + 1}: {m[0].strip()}" for m in LEFTOVERS.finditer(code)]


def rewrite(text: str, name: str, counts: Counter[str]) -> str:
    """Rewrite one file. Adds the number of matches of each rule to `counts`."""
    kernels = plain_kernels(text)
    counts["plain-kernel"] += len(kernels)
    lines = text.count("\n")
    for rule in RULES:
        text, n = rule.pattern.subn(rule.replace, text)
        counts[rule.name] += n
    if left := leftovers(text, name):
        raise RewriteError("no rule understands:\n  " + "\n  ".join(left))
    if text.count("\n") != lines:
        raise RewriteError(f"{name}: the rewriting moved lines")
    if kernels:
        text = (
            text.rstrip("\n")
            + "\n"
            + "\n".join(f"METAL_EMULATOR_KERNEL({host}, {function})" for host, function in kernels)
            + "\n"
        )
    return text


def check_counts(counts: Counter[str]) -> None:
    minima = {rule.name: rule.minimum for rule in RULES} | {"plain-kernel": PLAIN_MINIMUM}
    short = [f"{name}: {counts[name]} matches, at least {n} expected" for name, n in minima.items() if counts[name] < n]
    if short:
        raise RewriteError("a rule no longer matches the kernel sources:\n  " + "\n  ".join(short))


def rewrite_tree(kernels: Path, out: Path, only: str, unroll: bool) -> Counter[str]:
    """Rewrite all files of the kernels folder, writing only those that change."""
    keep = re.compile(only) if only else None
    counts: Counter[str] = Counter()
    out.mkdir(parents=True, exist_ok=True)
    for source in sorted(kernels.iterdir()):
        original = source.read_text(encoding="utf-8")
        rewrite(original, source.name, counts)  # the whole text is judged, whatever is dropped
        text = rewrite(drop_instantiations(original, keep), source.name, Counter())
        if not unroll:
            text = text.replace(UNROLL, "")
        text = f'#line 1 "{source}"\n{text}'
        target = out / source.name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    check_counts(counts)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", type=Path, help="ggml/src/ggml-metal/kernels of the tree")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="regular expression: host names of the instantiations to keep")
    parser.add_argument(
        "--no-unroll", action="store_true", help="drop the full-unroll pragma: compiles many times faster"
    )
    arguments = parser.parse_args()
    try:
        counts = rewrite_tree(arguments.kernels, arguments.out, arguments.only, not arguments.no_unroll)
    except RewriteError as error:
        sys.stderr.write(f"rewrite: {error}\n")
        return 1
    sys.stdout.write("rewrites: " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
