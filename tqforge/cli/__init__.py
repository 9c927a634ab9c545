"""The command line: parses, calls one command, turns errors into exit codes."""

from tqforge.cli.app import main

__all__ = ["main"]
