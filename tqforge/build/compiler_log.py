"""Read the output of CMake, Ninja, compilers and linkers. Pure functions, tested on recorded logs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters import proc, toolchain
from tqforge.adapters.fs import names_full_disk
from tqforge.errors import BuildError, DiskFullError, ToolchainError, TqforgeError

_STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)$")
_VERB = re.compile(r"^(?:Building \S+ object|Linking \S+(?: \w+)* library|Linking \S+ executable|Generating) (.*)$")
_FAILED = re.compile(r"^FAILED:\s*(?:\[code=\d+\]\s*)?(.*)$")
_COMPILER = re.compile(r"^(\S[^:\n]*):(\d+)(?::\d+)?: (?:fatal )?error: (.*)$")
_DRIVERS = r"(?:c\+\+|cc|g\+\+|gcc|clang(?:\+\+)?|ld|collect2|.*/ld)(?:-\d+)?: (?:fatal )?(?:error: )?"
_TOOL = re.compile(rf"^(?:{_DRIVERS}|ninja: (?:fatal|error): )(.+)$")
_LINKER = re.compile(r"(undefined reference to .*|Undefined symbols for architecture .*|multiple definition of .*)$")
_CMAKE = re.compile(r"^CMake Error(?: at ([^:]+:\d+)(?: \([^)]*\))?)?:\s*(.*)$")
_CONTEXT_LINES = 4

_OUT_OF_MEMORY = (
    "Killed signal terminated program",
    "virtual memory exhausted",
    "out of memory",
    "Cannot allocate memory",
)
_NO_COMPILER = {
    "No CMAKE_C_COMPILER could be found": "CMake found no C compiler.",
    "No CMAKE_CXX_COMPILER could be found": "CMake found no C++ compiler.",
    "is not a full path to an existing compiler": "The chosen compiler does not exist.",
    "is not able to compile a simple test program": "The compiler cannot compile and link a simple program.",
    "invalid active developer path": "Apple's command line tools are not installed.",
    "agree to the Xcode license": "The licence of Xcode has not been accepted.",
}


@dataclass(frozen=True)
class Step:
    """One line of Ninja's progress."""

    done: int
    total: int
    what: str


@dataclass(frozen=True)
class BuildFailure:
    """The first real error of a log. `cause` is `disk`, `memory`, `toolchain` or `source`."""

    what: str
    where: str = ""
    cause: str = "source"


def step(line: str) -> Step | None:
    """Parse a line such as `[12/230] Building C object ggml/x.c.o`; None for any other line."""
    found = _STEP.match(line)
    if not found:
        return None
    what = found[3]
    verb = _VERB.match(what)
    return Step(int(found[1]), int(found[2]), verb[1].rsplit("/", 1)[-1] if verb else what)


def first_error(log: str) -> BuildFailure:
    """Return the root error of a log: not the command, the summary or follow-up errors."""
    lines = log.splitlines()
    for cause, matches in (("disk", names_full_disk), ("memory", _is_out_of_memory)):
        for number, line in enumerate(lines):
            if matches(line):
                return BuildFailure(line.strip(), _failed_target(lines[: number + 1]), cause)
    for mark, sentence in _NO_COMPILER.items():
        if mark in log:
            return BuildFailure(sentence, cause="toolchain")
    return _source_error(lines) or _cmake_error(lines) or _last_line(lines)


def _is_out_of_memory(line: str) -> bool:
    return any(mark in line for mark in _OUT_OF_MEMORY)


def _source_error(lines: list[str]) -> BuildFailure | None:
    for pattern in (_COMPILER, _LINKER, _TOOL):
        for number, line in enumerate(lines):
            found = pattern.search(line) if pattern is _LINKER else pattern.match(line)
            if not found:
                continue
            if pattern is _COMPILER:
                return BuildFailure(_with_context(lines, number, found[3]), f"{found[1]}:{found[2]}")
            return BuildFailure(_with_symbol(lines, number, found[1].strip()), _failed_target(lines[: number + 1]))
    return None


def _with_context(lines: list[str], number: int, message: str) -> str:
    """Return the message with the source line and the caret that the compiler printed below it."""
    shown = []
    for line in lines[number + 1 : number + 1 + _CONTEXT_LINES]:
        if not re.match(r"^\s*(\d+ )?\|", line):
            break
        shown.append(line.rstrip())
    return "\n".join([message, *shown])


def _with_symbol(lines: list[str], number: int, message: str) -> str:
    """Apple's linker names the symbol in the next line."""
    return f"{message} {lines[number + 1].strip()}" if message.endswith(":") and number + 1 < len(lines) else message


def _cmake_error(lines: list[str]) -> BuildFailure | None:
    for number, line in enumerate(lines):
        found = _CMAKE.match(line)
        if not found:
            continue
        text = [found[2].strip()] if found[2].strip() else []
        for follow in lines[number + 1 :]:
            if follow.strip() and not follow.startswith(" "):
                break
            if not follow.strip() and text:
                break
            text += [follow.strip()] if follow.strip() else []
        return BuildFailure(" ".join(text) or line, found[1] or "")
    return None


def _failed_target(lines: list[str]) -> str:
    for line in reversed(lines):
        if found := _FAILED.match(line):
            return found[1].strip()
    return ""


def _last_line(lines: list[str]) -> BuildFailure:
    said = [line.strip() for line in lines if line.strip()]
    return BuildFailure(said[-1] if said else "No output.", _failed_target(lines))


def explain(error: proc.ProcessError, log: Path) -> TqforgeError:
    """Turn a failed CMake or Ninja run into the error class of its first real error."""
    if error.done.signal_name:
        return BuildError(f"{Path(error.done.argv[0]).name} died of {error.done.signal_name}.", where=str(log))
    failure = first_error(error.done.stdout)
    remedy = f"Read the whole log: {log}"
    if failure.cause == "disk":
        return DiskFullError("The disk is full.", where=failure.where or str(log))
    if failure.cause == "toolchain":
        return ToolchainError(failure.what, where=str(log), remedy=toolchain.compiler_remedy())
    if failure.cause == "memory":
        remedy = f"The compiler ran out of memory: try `--jobs 1`. {remedy}"
    return BuildError(failure.what, where=failure.where or str(log), remedy=remedy)
