"""Why a patch does not apply: file, hunk and class, read from git's own words and from the patch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tqforge.series.patchfile import FileDiff, PatchFile, PatchFormatError, parse


class Kind(StrEnum):
    """The classes of failure."""

    CONFLICT = "conflict"
    TARGET_DELETED = "target deleted"
    BROKEN = "broken"
    ALREADY_UPSTREAM = "already upstream"


@dataclass(frozen=True)
class Failure:
    """One patch that does not apply."""

    patch: str
    kind: Kind
    file: str = ""
    hunk: int = 0  # counted from 1; 0 when the failure is not about one hunk
    hunks: int = 0
    detail: str = ""

    def sentence(self) -> str:
        """One sentence for a person."""
        place = f" in {self.file}" if self.file else ""
        if self.hunk:
            place += f", hunk {self.hunk} of {self.hunks}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.patch} does not apply: {self.kind}{place}{detail}"


_PATCH_FAILED = re.compile(r"^error: patch failed: (.+):(\d+)$", re.M)
_GONE = re.compile(r"^error: (.+): (?:does not exist in index|No such file or directory)$", re.M)
_EXISTS = re.compile(r"^error: (.+): already exists in (?:index|working directory)$", re.M)
_REFUSED = re.compile(r"^error: (.+): (?:patch does not apply|cannot read|wrong type|.*symbolic link.*)$", re.M)
_ABOUT_A_FILE = (
    (_GONE, Kind.TARGET_DELETED, "the base has no such file"),
    (_EXISTS, Kind.CONFLICT, "the patch adds a file that is already there"),
    (_REFUSED, Kind.CONFLICT, ""),
)
_ERROR = re.compile(r"^(?:error|fatal): (.+)$", re.M)


def broken_reason(data: bytes) -> str:
    """Why a patch file cannot be a patch at all, or an empty string."""
    head, _, _ = data.partition(b"\ndiff --git ")
    if b"\r\n" in head:
        return "its lines end in CRLF: the file was converted on its way; fetch it again without conversion"
    try:
        patch = parse(data.decode("utf-8", "surrogateescape"))
    except PatchFormatError as error:
        return str(error)
    return "" if patch.files else "it changes no file"


def classify(name: str, data: bytes, said: str, *, reverses: bool) -> Failure:
    """The failure of one patch. `said` is what git wrote; `reverses` is whether the patch applies in reverse."""
    if reason := broken_reason(data):
        return Failure(name, Kind.BROKEN, detail=reason)
    patch = parse(data.decode("utf-8", "surrogateescape"))
    if reverses:
        return Failure(name, Kind.ALREADY_UPSTREAM, file=patch.paths()[0], detail="the tree holds all of it")
    if found := _PATCH_FAILED.search(said):
        return _conflict(name, patch, found[1], int(found[2]))
    for pattern, kind, detail in _ABOUT_A_FILE:
        if found := pattern.search(said):
            return Failure(name, kind, file=found[1], detail=detail)
    found = _ERROR.search(said)
    return Failure(name, Kind.BROKEN, detail=found[1] if found else "git gave no reason")


def _conflict(name: str, patch: PatchFile, file: str, line: int) -> Failure:
    diff: FileDiff | None = next((item for item in patch.files if item.path == file), None)
    hunks = diff.hunks if diff else ()
    number = next((count for count, hunk in enumerate(hunks, 1) if hunk.old_start == line), 0)
    return Failure(name, Kind.CONFLICT, file=file, hunk=number, hunks=len(hunks), detail=f"line {line}")
