"""Write the generated sections of README.md and the picture of the report; `--check` only compares the sections.

python ci/generate.py [--check]

Figures come from recorded runs in docs/reports. To record one again, in any folder:

    tqforge verify --quick --out run && cp run/report.json <repository>/docs/reports/smollm2-135m-instruct.json
"""

from __future__ import annotations

import difflib
import io
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from tqforge.adapters import proc
from tqforge.cli.app import app
from tqforge.cli.verbs import register
from tqforge.errors import ExitCode, error_classes
from tqforge.report import fmt
from tqforge.report.judge import pair_levels
from tqforge.report.render import html
from tqforge.report.render.sentences import pairs as pair_words
from tqforge.report.render.terminal import screen
from tqforge.report.schema import store
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import PairVerdict

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
REPORTS = ROOT / "docs/reports"
PICTURE = ROOT / "docs/images/report.png"
#: The run of `tqforge verify --quick` that the README shows.
SHOWN = REPORTS / "smollm2-135m-instruct.json"
WIDTH = 80


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _verbs(group: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _verbs(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", (command.help or "").strip().split("\n\n")[0].replace("\n", " ")


def commands() -> str:
    """Every command of the program with the first sentence of its help."""
    register(app)
    rows = [(f"`{name}`", text) for name, text in _verbs(typer.main.get_command(app), "tqforge")]
    return _table(("command", "what it does"), rows)


def exit_codes() -> str:
    """The exit codes of errors.py."""
    first = [("0", "Success."), ("1", "A check failed."), ("2", "Usage error."), ("3", "Internal error.")]
    classes = [cls for cls in error_classes() if int(cls.code) > int(ExitCode.BUG)]
    named = [(str(int(cls.code)), (cls.__doc__ or "").strip().splitlines()[0]) for cls in classes]
    last = [
        (str(int(ExitCode.INTERRUPTED)), "Interrupted by Ctrl-C. The next command cleans up."),
        (str(int(ExitCode.TERMINATED)), "Terminated by SIGTERM."),
    ]
    return _table(("exit code", "meaning"), [*first, *named, *last])


def pins() -> str:
    """The bases of bases.toml."""
    bases = tomllib.loads((ROOT / "third_party/bases.toml").read_text(encoding="utf-8"))["bases"]
    rows = [
        (f"`{name}`", base["title"], f"`{base['commit'][:12]}`", "{project} {version}".format(**base["archive"]))
        for name, base in bases.items()
    ]
    return _table(("base", "llama.cpp", "commit", "source archive and Python bindings"), rows)


def patches() -> str:
    """The patches of every series, in order, with their `Why:` lines."""
    rows = []
    for series in sorted((ROOT / "patches").glob("*/series")):
        for line in series.read_text(encoding="utf-8").splitlines():
            name = line.split("#")[0].strip().removesuffix(".patch")
            if name:
                text = (series.parent / f"{name}.patch").read_text(encoding="utf-8")
                why = re.search(r"^Why: (.+)$", text, re.MULTILINE)
                rows.append((f"`{name}`", why.group(1) if why else ""))
    return _table(("patch", "why"), rows)


def reports() -> dict[str, Report]:
    """The recorded runs by model file."""
    found = [store.load(path) for path in sorted(REPORTS.glob("*.json"))]
    if not found:
        raise SystemExit(f"no recorded run in {REPORTS}")
    return {report.model.file if report.model else "": report for report in found}


def pairs() -> str:
    """Verdict and KL divergence of each pair on each model, the largest cache first."""
    by_model = {name: {one.pair: one for one in _verdicts(report)} for name, report in reports().items()}
    every = {one.pair: one for verdicts in by_model.values() for one in verdicts.values()}
    rows = [
        (f"`{one.pair}`", fmt.bits(one.bits), *(_verdict(verdicts.get(pair)) for verdicts in by_model.values()))
        for pair, one in sorted(every.items(), key=lambda item: (-item[1].bits, item[0]))
    ]
    return _table(("K/V pair", "bits per value", *by_model), rows)


def _verdicts(report: Report) -> list[PairVerdict]:
    return [one for one in pair_levels.judge(report) if not one.unrotated]


def _verdict(one: PairVerdict | None) -> str:
    return f"{one.level}: {pair_words.why(one)}" if one else fmt.NONE


def excerpt() -> str:
    """The terminal output of the shown run: the pair table, and everything from the budgets on."""
    stream = io.StringIO()
    Console(file=stream, width=WIDTH).print(screen.render(store.load(SHOWN)), crop=False)
    blocks = stream.getvalue().strip("\n").split("\n\n")
    start = next(place for place, block in enumerate(blocks) if block.startswith("Recommended pair by memory"))
    shown = "\n\n".join((*blocks[:2], "[...]", *blocks[start:]))
    return f"```console\n$ tqforge verify --quick\n{shown}\n```"


def picture() -> bool:
    """Take a screenshot of the page of the shown run. False if there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        return False
    PICTURE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(html.render(store.load(SHOWN)), encoding="utf-8")
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,1000")
        proc.run([browser, *options, f"--screenshot={PICTURE}", page.as_uri()], timeout=120)
    return True


SECTIONS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "exit-codes": exit_codes,
    "pins": pins,
    "patches": patches,
    "pairs": pairs,
    "excerpt": excerpt,
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
    """Update README.md and the picture, or compare README.md. Returns the exit code."""
    old = README.read_text(encoding="utf-8")
    new = generated(old)
    if "--check" in sys.argv:
        diff = difflib.unified_diff(old.splitlines(True), new.splitlines(True), "README.md", "generated")
        sys.stdout.writelines(diff)
        if old != new:
            sys.stdout.write("README.md is out of date: run `python ci/generate.py`.\n")
        return int(old != new)
    README.write_text(new, encoding="utf-8")
    if not picture():
        sys.stdout.write(f"{PICTURE.name} was not updated: Chromium is not installed.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
