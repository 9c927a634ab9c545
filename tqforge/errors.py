"""The errors of tqforge: one exit code per class, and a remedy per error.

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
    """SIGTERM, which is handled like Ctrl-C."""


class TqforgeError(Exception):
    """What happened (`what`), where (`where`), and what to do next (`remedy`)."""

    code: ExitCode = ExitCode.BUG
    default_remedy = ""

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy or self.default_remedy

    def to_json(self) -> dict[str, str | int]:
        """Return the `error` object of `--json` output."""
        return {
            "class": type(self).__name__,
            "code": int(self.code),
            "what": self.what,
            "where": self.where,
            "remedy": self.remedy,
        }


class UsageError(TqforgeError):
    """The command line names something that does not exist or contradicts itself."""

    code = ExitCode.USAGE
    default_remedy = "See `tqforge --help`."


class ConfigError(TqforgeError):
    """A manifest, a lock or a series file is malformed, or they contradict each other."""

    code = ExitCode.CONFIG


class DownloadError(TqforgeError):
    """A download failed."""

    code = ExitCode.DOWNLOAD
    default_remedy = "Check the network and your package-index settings, then run the command again."


class IntegrityError(TqforgeError):
    """A download or a workspace file does not match its pin."""

    code = ExitCode.INTEGRITY


class ArchiveError(TqforgeError):
    """An archive is truncated, corrupt or unsafe to extract."""

    code = ExitCode.ARCHIVE


class CheckoutError(TqforgeError):
    """The checkout is dirty or at an unexpected tree."""

    code = ExitCode.CHECKOUT


class PatchError(TqforgeError):
    """A patch of the series does not apply."""

    code = ExitCode.PATCH


class LockedError(TqforgeError):
    """Another tqforge process is using this workspace."""

    code = ExitCode.LOCKED
    default_remedy = "Wait for it to finish, or choose another workspace with --workspace."


class DiskFullError(TqforgeError):
    """The disk is full. Incomplete files were removed."""

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
    """The built library does not load, or lacks tq3_0."""

    code = ExitCode.LOAD


class CrashError(TqforgeError):
    """Native code crashed in a child process."""

    code = ExitCode.CRASH

    def __init__(self, what: str, *, signal: str = "", where: str = "", remedy: str = "") -> None:
        """`signal` is the name of the signal that killed the process, or empty."""
        super().__init__(what, where=where, remedy=remedy)
        self.signal = signal


class PlatformError(TqforgeError):
    """This machine cannot do what was asked for."""

    code = ExitCode.PLATFORM


class ModelError(TqforgeError):
    """The model file is missing, truncated, not a GGUF, or of an unsupported kind."""

    code = ExitCode.MODEL


class CacheTypeError(TqforgeError):
    """A cache type is unknown or does not fit the model."""

    code = ExitCode.CACHE_TYPE


class ContextLengthError(TqforgeError):
    """A prompt does not fit the context, or the context does not fit the model."""

    code = ExitCode.CONTEXT


def error_classes() -> list[type[TqforgeError]]:
    """Return all error classes in the order of their exit codes."""
    return sorted(TqforgeError.__subclasses__(), key=lambda cls: int(cls.code))
