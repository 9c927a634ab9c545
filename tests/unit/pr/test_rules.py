"""The checklist: upstream's rules, their evidence, and what changed upstream."""

from __future__ import annotations

from typing import cast

import pytest
from lint_series import FakeTree

from tqforge.adapters.git import TreeFiles
from tqforge.pr.rules import Checklist, Rules, State, check, page

GUIDE, AGENTS = "CONTRIBUTING.md", "AGENTS.md"
RULES = Rules.model_validate(
    {
        "schema": 1,
        "documents": [{"path": GUIDE, "blob": "a" * 40}, {"path": AGENTS, "blob": "b" * 40}],
        "rules": [
            {"quote": "Create separate PRs for each feature", "ask": "One feature per part", "evidence": "split"},
            {"quote": "provide KL divergence", "ask": "KL divergence", "evidence": "quality"},
            {"quote": "Read it yourself", "ask": "Somebody reads it", "evidence": "person"},
        ],
    }
)


class Tree(FakeTree):
    """The documents of a base with chosen blob ids."""

    blobs: dict[str, str]

    def blob(self, path: str) -> str:
        return self.blobs.get(path, "")


def checklist(files: dict[str, str], blobs: dict[str, str], **states: State) -> Checklist:
    tree = Tree(files)
    tree.blobs = blobs
    return check(RULES, cast(TreeFiles, tree), states)


SAME = {GUIDE: "a" * 40, AGENTS: "b" * 40}
TEXT = {GUIDE: "# Guide\n\nCreate separate\nPRs for each   feature or fix.\n", AGENTS: "Read it yourself.\n"}


def test_items_have_their_state_and_the_document_that_still_says_so() -> None:
    found = checklist(TEXT, SAME, split=State(True, "parts/: cpu"), quality=State(False, "missing: a run"))
    assert [item.document for item in found.items] == [GUIDE, "", AGENTS]
    assert [item.state.filled for item in found.items] == [True, False, False]
    assert found.items[2].state.what == "to be done by a person"
    assert found.missing == ["KL divergence", "Somebody reads it"]
    assert found.changes == ()


@pytest.mark.parametrize(
    ("blobs", "changes"),
    [
        (SAME, []),
        ({GUIDE: "a" * 40, AGENTS: "c" * 40}, [f"{AGENTS} changed since the checklist was made"]),
        ({GUIDE: "a" * 40}, [f"{AGENTS} is not in this base"]),
        ({}, [f"{GUIDE} is not in this base", f"{AGENTS} is not in this base"]),
    ],
)
def test_changes_upstream(blobs: dict[str, str], changes: list[str]) -> None:
    found = checklist(TEXT, blobs).changes
    assert len(found) == len(changes)
    assert all(line.startswith(start) for line, start in zip(found, changes, strict=True))


def test_the_page() -> None:
    found = checklist(TEXT, SAME, split=State(True, "parts/: cpu"))
    assert page(found, ()) == (
        "# Checklist\n\nUpstream's rules have not changed since the checklist was made.\n\n"
        "- [x] One feature per part\n  - parts/: cpu\n"
        f'  - {GUIDE}: "Create separate PRs for each feature"\n'
        "- [ ] KL divergence\n  - to be done by a person\n"
        '  - no longer found in this base: "provide KL divergence"\n'
        "- [ ] Somebody reads it\n  - to be done by a person\n"
        f'  - {AGENTS}: "Read it yourself"\n'
    )


def test_the_page_names_changes_and_stale_runs() -> None:
    text = page(checklist(TEXT, {GUIDE: "a" * 40}), ["old: tree f is not exported here"])
    assert f"**{AGENTS} is not in this base: look for its rules yourself.**" in text
    assert "have not changed" not in text
    assert text.endswith("## Recorded runs that do not count here\n\n- old: tree f is not exported here\n")
