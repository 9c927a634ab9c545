"""`main` catches, `main_inner` raises: a test can assert on either."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from tqforge import __version__
from tqforge.adapters.console import Output
from tqforge.context import Context
from tqforge.errors import ExitCode, Terminated, TqforgeError
from tqforge.workspace import ENV_HOME, Workspace

app = typer.Typer(
    name="tqforge",
    help="Carry the tq3_0 KV-cache type on a pinned llama.cpp, build it, and prove on this machine what it does.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


#: Whether SIGTERM came: typer turns it into the exit code of Ctrl-C.
_terminated = threading.Event()


def _version(value: bool) -> None:
    if value:
        typer.echo(f"tqforge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", envvar=ENV_HOME, help="Folder for downloads, builds and results.", file_okay=False),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only results and errors.")] = False,
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    ctx.obj = (Workspace.locate(workspace), quiet)


JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def context_of(ctx: typer.Context, *, json: bool) -> Context:
    """The Context of a command from what the root options said."""
    workspace, quiet = ctx.find_root().obj
    return Context(workspace=workspace, out=Output(json_mode=json, quiet=quiet), argv=tuple(sys.argv[1:]))


def finish(code: int) -> None:
    """End a command with its exit code."""
    raise typer.Exit(code)


def _register() -> None:
    """Import the verbs; each registers itself on `app`. Their commands are imported only when they run."""
    from tqforge.cli import verbs

    verbs.register(app)


def main_inner(argv: list[str]) -> int:
    """Run a command line. Raises TqforgeError, KeyboardInterrupt and click's usage errors."""
    _register()
    result = typer.main.get_command(app).main(args=argv, prog_name="tqforge", standalone_mode=False)
    return int(result or 0)


def _guarded(action: Callable[[], int], out: Output) -> int:
    code: int
    try:
        code = action()
    except TqforgeError as error:
        out.error(error)
        code = int(error.code)
    except typer.Exit as leave:
        code = leave.exit_code
    except typer.TyperException as error:
        _show_usage_error(error)
        code = int(ExitCode.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        code = int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = int(ExitCode.OK)
    except Exception as error:  # the last door: a bug is reported as one
        out.err.print(traceback.format_exc(), markup=False)
        remedy = "Please report it with the lines above."
        out.error(TqforgeError(f"A bug in tqforge: {type(error).__name__}: {error}", remedy=remedy))
        code = int(ExitCode.BUG)
    if code == ExitCode.INTERRUPTED:  # typer may have caught it before, and given this code back
        out.err.print("[yellow]interrupted.[/] Run the same command again: it goes on from a clean state.")
    return code


def _show_usage_error(error: typer.TyperException) -> None:
    show = getattr(error, "show", None)
    if callable(show):
        show(sys.stderr)
    else:
        sys.stderr.write(f"Error: {error.format_message()}\n")


def _terminate(_number: int, _frame: FrameType | None) -> None:
    """As Ctrl-C: what runs is wound up, and what was observed is reported."""
    _terminated.set()
    raise Terminated


def main() -> None:
    """Entry point of the console script."""
    argv = sys.argv[1:]
    signal.signal(signal.SIGTERM, _terminate)
    out = Output(json_mode="--json" in argv)
    code = _guarded(lambda: main_inner(argv), out)
    sys.exit(int(ExitCode.TERMINATED) if _terminated.is_set() else code)
