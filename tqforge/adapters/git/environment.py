"""Fixed settings, identity and date, so that the result of a git call depends on its input alone."""

from __future__ import annotations

import os
from pathlib import Path

IDENTITY = "tqforge"
EMAIL = "tqforge@localhost"
#: Date of every commit that tqforge makes, so that the same content gives the same id everywhere.
DATE = "2026-10-01T00:00:00+0000"
FIXED_DATE = {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
#: Settings that would change bytes or ids. They win over the repository's own configuration as well.
_SETTINGS = {
    "advice.detachedHead": "false",
    "am.keepcr": "true",
    "am.threeWay": "false",
    "apply.whitespace": "nowarn",
    "checkout.workers": "0",  # one per core: writing the files is most of an `apply`
    "commit.cleanup": "default",
    "commit.gpgSign": "false",
    "core.abbrev": "40",
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.eol": "lf",
    "core.excludesFile": os.devnull,
    "core.fileMode": "true",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "true",
    "core.safecrlf": "false",
    "core.whitespace": "-trailing-space,-space-before-tab,-blank-at-eof",
    "diff.algorithm": "myers",
    "diff.colorMoved": "no",
    "diff.context": "3",
    "diff.indentHeuristic": "true",
    "diff.interHunkContext": "0",
    "diff.mnemonicPrefix": "false",
    "diff.noprefix": "false",
    "diff.orderFile": os.devnull,
    "diff.renames": "false",
    "diff.submodule": "short",
    "diff.suppressBlankEmpty": "false",
    "format.coverLetter": "false",
    "format.from": "false",
    "format.notes": "false",
    "format.numbered": "false",
    "format.signOff": "false",
    "format.thread": "false",
    "format.useAutoBase": "false",
    "gc.auto": "0",
    "i18n.commitEncoding": "UTF-8",
    "i18n.logOutputEncoding": "UTF-8",
    "maintenance.auto": "false",
    "merge.conflictStyle": "merge",
    "merge.renames": "true",
    "rerere.enabled": "false",
    "safe.directory": "*",
}


def cleared() -> dict[str, str | None]:
    """Return the change that unsets every GIT_ variable of the user."""
    return {name: None for name in os.environ if name.startswith("GIT_")}


def hermetic_env(ceiling: Path) -> dict[str, str | None]:
    """Return the changes to the environment that make a git call depend on its input alone."""
    env = cleared()
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(ceiling),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "false",
        "GIT_PAGER": "cat",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_DEFAULT_REF_FORMAT": "files",  # the one that GitPython reads
        "GIT_AUTHOR_NAME": IDENTITY,
        "GIT_AUTHOR_EMAIL": EMAIL,
        "GIT_COMMITTER_NAME": IDENTITY,
        "GIT_COMMITTER_EMAIL": EMAIL,
        "EMAIL": None,
        "LC_ALL": "C",
        "LANGUAGE": "C",
        "TZ": "UTC",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    }
    for number, (key, value) in enumerate(_SETTINGS.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env
