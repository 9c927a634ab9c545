"""Read upstream's own rules from the base, and compare them with the version that the checklist was made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqforge.adapters.git import TreeFiles
from tqforge.base.pins import Hex40
from tqforge.core import toml_file
from tqforge.core.toml_file import Entry

Evidence = Literal["person", "prove", "split", "ops", "cases", "quality", "speed"]


class Document(Entry):
    """A document of upstream, with its git blob id when it was read."""

    path: str
    blob: Hex40


class Rule(Entry):
    """One rule: upstream's words, what it asks for, and the evidence that answers it."""

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
    """Whether the evidence that a rule asks for exists."""

    filled: bool
    what: str


@dataclass(frozen=True)
class Item:
    """One rule with its state, and the document of the base that still contains its words."""

    rule: Rule
    state: State
    document: str = ""


@dataclass(frozen=True)
class Checklist:
    """Every rule with its state, and what changed upstream."""

    items: tuple[Item, ...]
    changes: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """What the rules ask for and is not there."""
        return [item.rule.ask for item in self.items if not item.state.filled]


def load(path: Path) -> Rules:
    """Read the rules. Raises ConfigError."""
    return toml_file.read(path, Rules, "The table of rules")


def check(rules: Rules, tree: TreeFiles, states: Mapping[str, State]) -> Checklist:
    """Compare the rules with the documents of a base and with the evidence."""
    texts = {document.path: _plain(tree.read(document.path) or "") for document in rules.documents}
    changes = [_change(document, tree.blob(document.path)) for document in rules.documents]
    items = (
        Item(
            rule,
            states.get(rule.evidence, State(False, "to be done by a person")),
            next((path for path, text in texts.items() if _plain(rule.quote) in text), ""),
        )
        for rule in rules.rules
    )
    return Checklist(tuple(items), tuple(change for change in changes if change))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _change(document: Document, blob: str) -> str:
    if not blob:
        return f"{document.path} is not in this base: look for its rules yourself."
    if blob != document.blob:
        return f"{document.path} changed since the checklist was made ({document.blob[:12]} -> {blob[:12]}): read it."
    return ""


def page(checklist: Checklist, stale: Sequence[str]) -> str:
    """Return the checklist in Markdown. `stale` are the recorded runs that do not count."""
    changes = [f"**{change}**" for change in checklist.changes]
    lines = ["# Checklist", "", *(changes or ["Upstream's rules have not changed since the checklist was made."]), ""]
    for item in checklist.items:
        quote = f'"{item.rule.quote}"'
        lines.append(f"- [{'x' if item.state.filled else ' '}] {item.rule.ask}")
        lines.append(f"  - {item.state.what}")
        lines.append(f"  - {item.document}: {quote}" if item.document else f"  - no longer found in this base: {quote}")
    if stale:
        lines += ["", "## Recorded runs that do not count here", "", *(f"- {line}" for line in stale)]
    return "\n".join(lines) + "\n"
