"""Write the generated parts of README.md; `--check` only compares.

python ci/generate.py [--check]
"""

from __future__ import annotations

import difflib
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from tqforge.cli.app import app
from tqforge.cli.verbs import register
from tqforge.errors import ExitCode, error_classes

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _verbs(group: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _verbs(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", (command.help or "").strip().split("\n\n")[0].replace("\n", " ")


def commands() -> str:
    register(app)
    rows = [(f"`{name}`", text) for name, text in _verbs(typer.main.get_command(app), "tqforge")]
    return _table(("command", "what it does"), rows)


def exit_codes() -> str:
    first = [("0", "Good."), ("1", "A check fell short."), ("2", "Wrong command line."), ("3", "A bug in tqforge.")]
    classes = [cls for cls in error_classes() if int(cls.code) > int(ExitCode.BUG)]
    named = [(str(int(cls.code)), (cls.__doc__ or "").strip().splitlines()[0]) for cls in classes]
    last = [
        (str(int(ExitCode.INTERRUPTED)), "Interrupted by Ctrl-C. The next command repairs what was left."),
        (str(int(ExitCode.TERMINATED)), "Ended by SIGTERM, as by Ctrl-C."),
    ]
    return _table(("exit code", "meaning"), [*first, *named, *last])


def pins() -> str:
    bases = tomllib.loads((ROOT / "third_party/bases.toml").read_text(encoding="utf-8"))["bases"]
    rows = [
        (f"`{name}`", base["title"], f"`{base['commit'][:12]}`", "{project} {version}".format(**base["archive"]))
        for name, base in bases.items()
    ]
    return _table(("base", "llama.cpp", "commit", "archive and bindings"), rows)


def patches() -> str:
    rows = []
    for series in sorted((ROOT / "patches").glob("*/series")):
        for line in series.read_text(encoding="utf-8").splitlines():
            name = line.split("#")[0].strip().removesuffix(".patch")
            if name:
                text = (series.parent / f"{name}.patch").read_text(encoding="utf-8")
                why = re.search(r"^Why: (.+)$", text, re.MULTILINE)
                rows.append((f"`{name}`", why.group(1) if why else ""))
    return _table(("patch", "why"), rows)


SECTIONS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "exit-codes": exit_codes,
    "pins": pins,
    "patches": patches,
}


def generated(text: str) -> str:
    """README text with every `<!-- generated: NAME -->` section filled anew."""
    for name, make in SECTIONS.items():
        start, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->"
        if start not in text or end not in text:
            raise SystemExit(f"README.md has no section '{name}'")
        before, rest = text.split(start, 1)
        text = f"{before}{start}{make()}\n{end}{rest.split(end, 1)[1]}"
    return text


def main() -> int:
    old = README.read_text(encoding="utf-8")
    new = generated(old)
    if old == new:
        return 0
    if "--check" in sys.argv:
        diff = difflib.unified_diff(old.splitlines(True), new.splitlines(True), "README.md", "generated")
        sys.stdout.writelines([*diff, "README.md is out of step: run `python ci/generate.py`.\n"])
        return 1
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
