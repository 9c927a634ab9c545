"""A user whose git configuration, hooks, locale, time zone and environment all differ."""

from __future__ import annotations

from pathlib import Path

import pytest

HOSTILE = """
[user]
    name = Somebody
    email = somebody@example.org
    signingKey = 0xDEAD
[core]
    autocrlf = true
    hooksPath = {home}/hooks
    abbrev = 5
    whitespace = trailing-space,tab-in-indent
[apply]
    whitespace = fix
[am]
    threeWay = true
    keepcr = false
[commit]
    gpgSign = true
    template = {home}/template
    cleanup = scissors
[diff]
    noprefix = true
    context = 9
    algorithm = patience
    renames = copies
    mnemonicPrefix = true
    interHunkContext = 4
[format]
    attach = true
    from = Other <other@example.org>
    headers = "X-Hostile: yes\\n"
    useAutoBase = true
    signature = hostile
    numbered = true
    signOff = true
    thread = deep
    coverLetter = true
    notes = true
    subjectPrefix = HOSTILE
[i18n]
    commitEncoding = ISO-8859-1
[init]
    defaultBranch = other
    templateDir = {home}/templates
[rerere]
    enabled = true
"""


def make_hostile(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whose configuration, hooks, attributes, templates, locale, time zone and environment all differ."""
    (home / ".gitconfig").write_text(HOSTILE.format(home=home))
    (home / "template").write_text("# template\n")
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/attributes").write_text("* text eol=crlf\n*.c binary\n")
    (home / ".config/git/ignore").write_text("*.c\n")
    for folder in ("hooks", "templates/hooks"):
        (home / folder).mkdir(parents=True)
        for hook in ("pre-commit", "applypatch-msg", "post-checkout", "commit-msg", "pre-applypatch"):
            (home / folder / hook).write_text("#!/bin/sh\nexit 1\n")
            (home / folder / hook).chmod(0o755)
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("GIT_DIR", str(home / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(home / "index"))
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Hostile")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
