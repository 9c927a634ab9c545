"""What a person sees: plain words and progress on standard error, results on standard output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tqforge.errors import TqforgeError

_QUIET_SECONDS = 10.0


class Meter(Protocol):
    """Progress of one long step."""

    def update(self, done: float, note: str = "") -> None:
        """Set the absolute amount done, and what is being done."""


class _BarMeter:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def update(self, done: float, note: str = "") -> None:
        self._progress.update(self._task, completed=done, note=note)


class _LineMeter:
    """One plain line now and then, for logs."""

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
    """The terminal of a command. With `json_mode` standard output carries one JSON document and nothing else."""

    def __init__(self, *, json_mode: bool = False, quiet: bool = False) -> None:
        self.json_mode = json_mode
        self.quiet = quiet
        self.err = Console(stderr=True, soft_wrap=True, highlight=False)
        self.out = Console(highlight=False)

    def say(self, text: str) -> None:
        """A line of what is happening. Plain text; rich markup is allowed in square brackets."""
        if not self.quiet:
            self.err.print(text)

    def tell(self, text: str) -> None:
        """As `say`, for a text from elsewhere: square brackets stay what they are."""
        self.say(escape(text))

    def step(self, text: str) -> None:
        """The headline of a step."""
        self.say(f"[bold cyan]==>[/] [bold]{escape(text)}[/]")

    def warn(self, text: str) -> None:
        self.err.print(f"[yellow]warning:[/] {escape(text)}")

    def show(self, renderable: RenderableType) -> None:
        """A result for a person (a table, a text); not printed in JSON mode."""
        if not self.json_mode:
            self.out.print(renderable, crop=False)

    def lines(self, *texts: str) -> None:
        """A result that may be copied or read by another program: each line whole, no colours; not in JSON mode."""
        if not self.json_mode:
            sys.stdout.write("".join(f"{text}\n" for text in texts))
            sys.stdout.flush()

    def document(self, value: dict[str, Any]) -> None:
        """The JSON document of the command; printed in JSON mode only."""
        if self.json_mode:
            sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
            sys.stdout.flush()

    def problem(self, error: TqforgeError) -> None:
        """What happened, where, and what to do next."""
        self.err.print(f"[bold red]error:[/] {escape(error.what)}")
        if error.where:
            self.err.print(f"  [dim]at[/] {escape(error.where)}")
        if error.remedy:
            self.err.print(f"  [green]next:[/] {escape(error.remedy)}")

    def error(self, error: TqforgeError) -> None:
        """The problem that ended a command; in JSON mode it is the command's document."""
        self.problem(error)
        self.document({"error": error.to_json()})

    @contextmanager
    def meter(self, title: str, total: float | None = None) -> Iterator[Meter]:
        """Progress of a long step: a bar with the time left on a terminal, a line now and then elsewhere."""
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
        """Say nothing."""
