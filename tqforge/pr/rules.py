"""Upstream's own rules, read from the base at hand and compared with what was read when the checklist was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqforge.base.pins import Hex40
from tqforge.core import toml_file
from tqforge.core.toml_file import Entry
from tqforge.series.lint.subject import Tree

Evidence = Literal["person", "prove", "split", "ops", "cases", "quality", "speed"]


class Document(Entry):
    """A document of upstream, and its git blob id when it was read."""

    path: str
    blob: Hex40


class Rule(Entry):
    """One rule: upstream's words, what is asked, and what fills it."""

    quote: str
    ask: str
    evidence: Evidence


class Rules(Entry):
    """`third_party/upstream_rules.toml`."""

    schema_: Literal[1]
    documents: tuple[Document, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class State:
    """How much of what a rule asks is there."""

    filled: bool
    what: str


def load(path: Path) -> Rules:
    """Read the rules. Raises ConfigError."""
    return toml_file.read(path, Rules, "The table of rules")


def checklist(
    rules: Rules, tree: Tree, blobs: Mapping[str, str], states: Mapping[str, State], stale: Sequence[str]
) -> str:
    """The checklist as a page: what changed upstream, then each rule in upstream's words with what is there."""
    texts = {document.path: " ".join((tree.read(document.path) or "").split()) for document in rules.documents}
    lines = ["# Checklist", ""]
    changed = [_change(document, blobs.get(document.path, "")) for document in rules.documents]
    lines += [line for line in changed if line] or ["The rules are those that the checklist was made from."]
    lines.append("")
    for rule in rules.rules:
        source = next((path for path, text in texts.items() if " ".join(rule.quote.split()) in text), "")
        state = states.get(rule.evidence, State(False, "to be done by a person"))
        lines.append(f"- [{'x' if state.filled else ' '}] {rule.ask}")
        lines.append(f"  - {state.what}")
        where = f'{source}: "{rule.quote}"' if source else f'no longer found in this base: "{rule.quote}"'
        lines.append(f"  - {where}")
    if stale:
        lines += ["", "## Recorded runs that do not count here", "", *(f"- {line}" for line in stale)]
    return "\n".join(lines) + "\n"


def _change(document: Document, blob: str) -> str:
    if not blob:
        return f"**{document.path} is not in this base: look for its rules yourself.**"
    if blob != document.blob:
        return (
            f"**{document.path} changed since the checklist was made ({document.blob[:12]} -> {blob[:12]}): read it.**"
        )
    return ""
