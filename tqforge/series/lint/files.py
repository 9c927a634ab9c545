"""Lint rules that only need the files of the series."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterator

from tqforge.errors import ConfigError
from tqforge.series import lock, trailers
from tqforge.series.failures import broken_reason
from tqforge.series.lint.subject import Finding, Rule, Subject
from tqforge.series.patchfile import FileDiff, PatchFile
from tqforge.series.series import SERIES, SUFFIX

_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|Users|root|tmp|work|mnt|private|var/folders)/[\w.-]+")
_AMEND = "Change the commit (`git commit --amend` in the checkout), then run `tqforge patch export`."
_ALLOWED = {SERIES, lock.FILENAME, ".gitkeep", "README.md"}
_SUBJECT = re.compile(r"^[a-z0-9_./ -]+ : \S")


def well_formed(subject: Subject) -> Iterator[Finding]:
    """Check that every file is a patch in mail format."""
    for patch in subject.series.patches:
        if reason := broken_reason(patch.data):
            yield Finding(
                patch.name, f"not a well-formed patch: {reason}", "Regenerate it with `tqforge patch export`."
            )


def trailers_complete(subject: Subject) -> Iterator[Finding]:
    """Check that name, reason, upstream status and guard are present and well-formed."""
    for patch, parsed in subject.parsed():
        for problem in trailers.problems(parsed.trailers, patch.title):
            yield Finding(patch.name, f"trailer {problem}", _AMEND)


def subject_line(subject: Subject) -> Iterator[Finding]:
    """Check that the subject has upstream's form."""
    for patch, parsed in subject.parsed():
        if not _SUBJECT.match(parsed.subject) or len(parsed.subject) > 72:
            yield Finding(
                patch.name, f"subject {parsed.subject!r} is not 'area : what' of at most 72 characters", _AMEND
            )


def series_and_folder_agree(subject: Subject) -> Iterator[Finding]:
    """Check that each patch file is listed, the folder holds nothing else, and the series is not empty."""
    listed = {patch.name for patch in subject.series.patches}
    if not listed:
        yield Finding("", f"the series of base '{subject.base}' is empty", "Export at least one patch.")
    for path in sorted(subject.paths.folder.iterdir()):
        if path.name in listed or path.name in _ALLOWED:
            continue
        if path.suffix == SUFFIX:
            yield Finding(path.name, "is in the folder but not in the series", f"List it in `{SERIES}` or remove it.")
        else:
            yield Finding(path.name, "does not belong to a series", "Move it elsewhere.")


def lock_agrees(subject: Subject) -> Iterator[Finding]:
    """Check that the lock lists exactly these files."""
    entry = lock.read(subject.paths.lock).bases.get(subject.base)
    if entry is None:
        yield Finding("", f"the lock has no entry for base '{subject.base}'", "Run `tqforge patch apply --write-lock`.")
        return
    try:
        lock.check_series(entry, subject.series, subject.paths.lock)
    except ConfigError as error:
        yield Finding("", error.what, error.remedy)


def does_something(subject: Subject) -> Iterator[Finding]:
    """Reject patches that change nothing, or only white space."""
    for patch, parsed in subject.parsed():
        for diff in parsed.files:
            if not diff.hunks and not diff.binary and diff.status == "M":
                what = "changes only the mode of" if diff.mode_change else "changes nothing in"
                yield Finding(patch.name, f"{what} {diff.path}", _AMEND)
            elif diff.hunks and _white_space_only(diff):
                yield Finding(patch.name, f"changes only white space in {diff.path}", _AMEND)


def _white_space_only(diff: FileDiff) -> bool:
    removed, added = (
        Counter("".join(line.split()) for hunk in diff.hunks for line in hunk.changed(sign)) for sign in "-+"
    )
    for lines in (removed, added):
        lines.pop("", None)
    return removed == added and diff.status == "M"


def plain_text(subject: Subject) -> Iterator[Finding]:
    """Reject binary content, CRLF, characters outside ASCII, and white space at the end of an added line."""
    for patch, parsed in subject.parsed():
        for diff in parsed.files:
            if diff.binary:
                yield Finding(patch.name, f"binary change of {diff.path}", "Keep binary files out of patches.")
            yield from _added_lines(patch.name, diff)
        added = (line for diff in parsed.files for hunk in diff.hunks for line in hunk.changed("+"))
        if not all(line.isascii() for line in (parsed.subject, *parsed.body, *added)):
            yield Finding(patch.name, "contains characters outside ASCII", _AMEND)


def _added_lines(name: str, diff: FileDiff) -> Iterator[Finding]:
    added = [line for hunk in diff.hunks for line in hunk.changed("+")]
    if any(line.endswith("\r") for line in added):
        yield Finding(name, f"adds lines that end in CRLF to {diff.path}", _AMEND)
    elif any(line != line.rstrip() for line in added):
        yield Finding(name, f"adds white space at the end of a line to {diff.path}", _AMEND)


def no_machine_path(subject: Subject) -> Iterator[Finding]:
    """Reject paths of somebody's machine in the message or in an added line."""
    for patch, parsed in subject.parsed():
        lines = [*parsed.body, *(line for diff in parsed.files for hunk in diff.hunks for line in hunk.changed("+"))]
        for line in lines:
            if found := _MACHINE_PATH.search(line):
                yield Finding(patch.name, f"contains a path of a machine: {found[0]}", _AMEND)


def inside_scope(subject: Subject) -> Iterator[Finding]:
    """Check that each patch only touches the files that the prefix of its name allows."""
    for patch, parsed in subject.parsed():
        scope = next((scope for scope in subject.settings.scopes if patch.name.startswith(scope.prefix)), None)
        if scope is None:
            known = ", ".join(sorted(scope.prefix for scope in subject.settings.scopes))
            yield Finding(patch.name, "the prefix of its name has no scope", f"Start the name with one of: {known}.")
            continue
        for path in _outside(parsed, scope.files):
            yield Finding(
                patch.name,
                f"touches {path}, which is outside the scope of '{scope.prefix}*'",
                "Move that change to another patch, or widen the scope in third_party/lint.toml.",
            )


def _outside(parsed: PatchFile, allowed: tuple[str, ...]) -> list[str]:
    return [path for path in parsed.paths() if not any(fnmatch.fnmatchcase(path, pattern) for pattern in allowed)]


RULES: tuple[tuple[str, Rule], ...] = (
    ("well-formed", well_formed),
    ("trailers", trailers_complete),
    ("subject", subject_line),
    ("series", series_and_folder_agree),
    ("lock", lock_agrees),
    ("no-op", does_something),
    ("plain-text", plain_text),
    ("machine-path", no_machine_path),
    ("scope", inside_scope),
)
