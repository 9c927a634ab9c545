"""The terminal: messages and progress on standard error, results on standard output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tqforge.core.reporter import Meter
from tqforge.errors import TqforgeError

_QUIET_SECONDS = 10.0


class _BarMeter:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def update(self, done: float, note: str = "") -> None:
        self._progress.update(self._task, completed=done, note=note)


class _LineMeter:
    """Print a line every ten seconds, for logs."""

    def __init__(self, console: Console, title: str, total: float | None) -> None:
        self._console, self._title, self._total = console, title, total
        self._start = self._last = time.monotonic()

    def update(self, done: float, note: str = "") -> None:
        now = time.monotonic()
        if now - self._last < _QUIET_SECONDS:
            return
        self._last = now
        spent = now - self._start
        part = f" {done / self._total:4.0%}" if self._total else ""
        left = f", about {spent / done * (self._total - done):.0f} s left" if self._total and done else ""
        self._console.print(f"  {self._title}{part} {note} ({spent:.0f} s{left})", markup=False, highlight=False)


class Output:
    """The terminal of a command, a Reporter. With `json_mode` standard output carries one JSON document only."""

    def __init__(self, *, json_mode: bool = False, quiet: bool = False) -> None:
        self.json_mode = json_mode
        self.quiet = quiet
        self.err = Console(stderr=True, soft_wrap=True, highlight=False)
        self.out = Console(highlight=False)

    def say(self, text: str) -> None:
        """Print a message with Rich markup."""
        if not self.quiet:
            self.err.print(text)

    def tell(self, text: str) -> None:
        """Print a message as plain text."""
        self.say(escape(text))

    def step(self, text: str) -> None:
        """Print the headline of a step."""
        self.say(f"[bold cyan]==>[/] [bold]{escape(text)}[/]")

    def warn(self, text: str) -> None:
        """Print a warning, also when quiet."""
        self.err.print(f"[yellow]warning:[/] {escape(text)}")

    def show(self, renderable: RenderableType) -> None:
        """Print a result (a table, a text), except in JSON mode."""
        if not self.json_mode:
            self.out.print(renderable, crop=False)

    def table(
        self,
        rows: Iterable[Sequence[str]],
        *,
        head: Sequence[str] = (),
        title: str | None = None,
        styles: Mapping[str, str] | None = None,
    ) -> None:
        """Print a table of plain texts as a result; `styles` maps whole cells to Rich styles."""
        table = Table(title=title) if head else Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name in head:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell, style=(styles or {}).get(cell, "")) for cell in row))
        self.show(table)

    def lines(self, *texts: str) -> None:
        """Print result lines without wrapping or colour, except in JSON mode."""
        if not self.json_mode:
            sys.stdout.write("".join(f"{text}\n" for text in texts))
            sys.stdout.flush()

    def document(self, value: dict[str, Any]) -> None:
        """Print the JSON document of the command, in JSON mode only."""
        if self.json_mode:
            sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
            sys.stdout.flush()

    def problem(self, error: TqforgeError) -> None:
        """Print what happened, where, and what to do next."""
        self.err.print(f"[bold red]error:[/] {escape(error.what)}")
        if error.where:
            self.err.print(f"  [dim]at[/] {escape(error.where)}")
        if error.remedy:
            self.err.print(f"  [green]next:[/] {escape(error.remedy)}")

    def error(self, error: TqforgeError) -> None:
        """Print the error that ended a command; in JSON mode as its document too."""
        self.problem(error)
        self.document({"error": error.to_json()})

    @contextmanager
    def meter(self, title: str, total: float | None = None) -> Iterator[Meter]:
        """Show a long step: a progress bar on a terminal, a line every ten seconds elsewhere."""
        if not self.err.is_terminal or self.quiet:
            yield _LineMeter(self.err, title, total) if not self.quiet else _Silent()
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f}%" if total else ""),
            TimeElapsedColumn(),
            TextColumn("[dim]left[/]" if total else ""),
            *((TimeRemainingColumn(),) if total else ()),
            TextColumn("[dim]{task.fields[note]}[/]"),
        )
        with Progress(*columns, console=self.err, transient=True) as progress:
            yield _BarMeter(progress, progress.add_task(title, total=total, note=""))


class _Silent:
    def update(self, done: float, note: str = "") -> None:
        """Print nothing."""
