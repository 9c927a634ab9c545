"""The program: `main` turns errors into exit codes, `main_inner` raises them."""

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
from tqforge.cli import verbs
from tqforge.errors import ExitCode, Terminated, TqforgeError
from tqforge.workspace import ENV_HOME, Workspace

app = typer.Typer(
    name="tqforge",
    help="Maintain, build and verify a llama.cpp patch series that adds the TurboQuant tq3_0 KV-cache type.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


#: Set by SIGTERM, because Typer gives it the exit code of Ctrl-C.
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
        typer.Option(
            "--workspace",
            envvar=ENV_HOME,
            help="Folder for downloads, builds and results.",
            metavar="DIR",
            show_default="the user's cache folder",
            file_okay=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors, no progress.")] = False,
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    ctx.obj = (Workspace.locate(workspace), quiet)


def main_inner(argv: list[str]) -> int:
    """Run a command line. Raises TqforgeError, KeyboardInterrupt and Typer's usage errors."""
    verbs.register(app)
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
    except Exception as error:
        out.err.print(traceback.format_exc(), markup=False)
        what = f"Internal error: {type(error).__name__}: {error}"
        out.error(TqforgeError(what, remedy="Report this as a bug, with the traceback above."))
        code = int(ExitCode.BUG)
    if code == ExitCode.INTERRUPTED:  # also when Typer caught the interrupt
        out.err.print("[yellow]Interrupted.[/] Run the same command again to continue.")
    return code


def _show_usage_error(error: typer.TyperException) -> None:
    show = getattr(error, "show", None)
    if callable(show):
        show(sys.stderr)
    else:
        sys.stderr.write(f"Error: {error.format_message()}\n")


def _terminate(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C: clean up, and report what was observed."""
    _terminated.set()
    raise Terminated


def main() -> None:
    """Run the console script."""
    argv = sys.argv[1:]
    signal.signal(signal.SIGTERM, _terminate)
    out = Output(json_mode="--json" in argv)
    code = _guarded(lambda: main_inner(argv), out)
    sys.exit(int(ExitCode.TERMINATED) if _terminated.is_set() else code)
