"""Explain why a patch does not apply: class, file and hunk, read from git's messages and from the patch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tqforge.errors import PatchError
from tqforge.series.patchfile import PatchFile, PatchFormatError, parse
from tqforge.series.series import Patch


class FailureKind(StrEnum):
    """The classes of failure."""

    CONFLICT = "conflict"
    TARGET_DELETED = "target deleted"
    BROKEN = "broken"
    ALREADY_UPSTREAM = "already upstream"


@dataclass(frozen=True)
class ApplyFailure:
    """One patch that does not apply."""

    patch: str
    kind: FailureKind
    file: str = ""
    hunk: int = 0  # counted from 1; 0 when the failure is not about one hunk
    hunks: int = 0
    detail: str = ""

    def sentence(self) -> str:
        """Return the failure as one sentence."""
        place = f" in {self.file}" if self.file else ""
        if self.hunk:
            place += f", hunk {self.hunk} of {self.hunks}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.patch} does not apply: {self.kind}{place}{detail}"


class ApplyError(PatchError):
    """A patch does not apply. Carries the cause, and the commit that it was tried on."""

    def __init__(self, failure: ApplyFailure, patch: Patch, *, base_commit: str, head: str) -> None:
        super().__init__(
            f"{failure.sentence()}.",
            where=str(patch.path),
            remedy="Nothing was changed. Run `tqforge patch apply` to resolve it step by step.",
        )
        self.failure, self.patch = failure, patch
        self.base_commit, self.head = base_commit, head


_PATCH_FAILED = re.compile(r"^error: patch failed: (.+):(\d+)$", re.M)
_GONE = re.compile(r"^error: (.+): (?:does not exist in index|No such file or directory)$", re.M)
_EXISTS = re.compile(r"^error: (.+): already exists in (?:index|working directory)$", re.M)
_REFUSED = re.compile(r"^error: (.+): (?:patch does not apply|cannot read|wrong type|.*symbolic link.*)$", re.M)
_ABOUT_A_FILE = (
    (_GONE, FailureKind.TARGET_DELETED, "the base has no such file"),
    (_EXISTS, FailureKind.CONFLICT, "the patch adds a file that already exists"),
    (_REFUSED, FailureKind.CONFLICT, ""),
)
_ERROR = re.compile(r"^(?:error|fatal): (.+)$", re.M)


def broken_reason(data: bytes) -> str:
    """Return why a patch file is malformed, or an empty string."""
    head, _, _ = data.partition(b"\ndiff --git ")
    if b"\r\n" in head:
        return "its lines end in CRLF: the file was converted in transfer; fetch it again without conversion"
    try:
        patch = parse(data.decode("utf-8", "surrogateescape"))
    except PatchFormatError as error:
        return str(error)
    return "" if patch.files else "it changes no file"


def classify(name: str, data: bytes, message: str, *, reverses: bool) -> ApplyFailure:
    """Classify the failure of one patch from git's message. `reverses` says that the patch applies in reverse."""
    if reason := broken_reason(data):
        return ApplyFailure(name, FailureKind.BROKEN, detail=reason)
    patch = parse(data.decode("utf-8", "surrogateescape"))
    if reverses:
        kind = FailureKind.ALREADY_UPSTREAM
        return ApplyFailure(name, kind, file=patch.paths()[0], detail="the tree already contains all of it")
    if found := _PATCH_FAILED.search(message):
        return _conflict(name, patch, found[1], int(found[2]))
    for pattern, kind, detail in _ABOUT_A_FILE:
        if found := pattern.search(message):
            return ApplyFailure(name, kind, file=found[1], detail=detail)
    found = _ERROR.search(message)
    return ApplyFailure(name, FailureKind.BROKEN, detail=found[1] if found else "git gave no reason")


def _conflict(name: str, patch: PatchFile, file: str, line: int) -> ApplyFailure:
    hunks = next((diff.hunks for diff in patch.files if diff.path == file), ())
    number = next((count for count, hunk in enumerate(hunks, 1) if hunk.old_start == line), 0)
    return ApplyFailure(name, FailureKind.CONFLICT, file=file, hunk=number, hunks=len(hunks), detail=f"line {line}")
