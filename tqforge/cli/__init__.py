"""The command line: parse it, run one command, turn errors into exit codes."""

from tqforge.cli.app import main

__all__ = ["main"]
