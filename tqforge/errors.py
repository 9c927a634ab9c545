"""Every error tqforge raises on purpose: one class, one exit code, one remedy.

The table in the README is generated from this module.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the `tqforge` program."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    BUG = 3
    CONFIG = 9
    DOWNLOAD = 10
    INTEGRITY = 11
    ARCHIVE = 12
    CHECKOUT = 13
    PATCH = 14
    LOCKED = 15
    DISK = 16
    TOOLCHAIN = 20
    BUILD = 21
    LOAD = 22
    CRASH = 23
    PLATFORM = 24
    MODEL = 30
    CACHE_TYPE = 31
    CONTEXT = 32
    INTERRUPTED = 130
    TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM: everything that winds up after Ctrl-C winds up after it too."""


class TqforgeError(Exception):
    """What happened (`args[0]`), where (`where`), and what to do next (`remedy`)."""

    code: ExitCode = ExitCode.BUG
    default_remedy = ""

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy or self.default_remedy

    def to_json(self) -> dict[str, str | int]:
        """The error as the `error` object of `--json` output."""
        return {
            "class": type(self).__name__,
            "code": int(self.code),
            "what": self.what,
            "where": self.where,
            "remedy": self.remedy,
        }


class UsageError(TqforgeError):
    """The command line asks for something that does not exist."""

    code = ExitCode.USAGE
    default_remedy = "See `tqforge --help`."


class ConfigError(TqforgeError):
    """A manifest, a lock or a series file is malformed or they disagree."""

    code = ExitCode.CONFIG


class DownloadError(TqforgeError):
    """Something could not be fetched."""

    code = ExitCode.DOWNLOAD
    default_remedy = "Check the network and your package-index settings, then run the command again."


class IntegrityError(TqforgeError):
    """What was fetched, or what lies in the workspace, is not what is pinned."""

    code = ExitCode.INTEGRITY


class ArchiveError(TqforgeError):
    """An archive is truncated, corrupt or hostile."""

    code = ExitCode.ARCHIVE


class CheckoutError(TqforgeError):
    """The checkout holds changes, or is not the tree it must be."""

    code = ExitCode.CHECKOUT


class PatchError(TqforgeError):
    """A patch of the series does not apply."""

    code = ExitCode.PATCH


class LockedError(TqforgeError):
    """Another tqforge works in the same workspace."""

    code = ExitCode.LOCKED
    default_remedy = "Wait for it to finish, or choose another workspace with --workspace."


class DiskFullError(TqforgeError):
    """The disk is full. Nothing half-written is kept."""

    code = ExitCode.DISK
    default_remedy = "Free some space, or choose a workspace on another disk with --workspace."


class ToolchainError(TqforgeError):
    """A compiler or a build tool is missing or too old."""

    code = ExitCode.TOOLCHAIN
    default_remedy = "Run `tqforge doctor`."


class BuildError(TqforgeError):
    """The compiler or the linker reported an error."""

    code = ExitCode.BUILD


class LoadError(TqforgeError):
    """The built library does not load, or is not the one it should be."""

    code = ExitCode.LOAD


class CrashError(TqforgeError):
    """Native code died in a child process."""

    code = ExitCode.CRASH

    def __init__(self, what: str, *, signal: str = "", where: str = "", remedy: str = "") -> None:
        """`signal` is the name of the signal that ended the process, empty when none did."""
        super().__init__(what, where=where, remedy=remedy)
        self.signal = signal


class PlatformError(TqforgeError):
    """This machine cannot do what was asked."""

    code = ExitCode.PLATFORM


class ModelError(TqforgeError):
    """The model file is missing, truncated, not a GGUF or of an unsupported kind."""

    code = ExitCode.MODEL


class CacheTypeError(TqforgeError):
    """A cache type is unknown, or does not fit the model."""

    code = ExitCode.CACHE_TYPE


class ContextLengthError(TqforgeError):
    """A prompt, a needle or a context is longer than what holds it."""

    code = ExitCode.CONTEXT


def error_classes() -> list[type[TqforgeError]]:
    """All error classes in the order of their exit codes."""
    return sorted(TqforgeError.__subclasses__(), key=lambda cls: int(cls.code))
