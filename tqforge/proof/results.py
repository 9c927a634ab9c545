"""Results of guard tests on trees, and the cache that lets an interrupted proof resume."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path

from pydantic import Field, ValidationError

from tqforge.adapters import fs
from tqforge.core.toml_file import Entry


class GuardStatus(StrEnum):
    """How a test ended on one tree."""

    PASSED = "passed"
    FAILED = "failed"
    BUILD_FAILED = "does not compile"
    NO_CASES = "ran no test case"
    SKIPPED = "skipped"

    @property
    def is_failure(self) -> bool:
        return self in (GuardStatus.FAILED, GuardStatus.BUILD_FAILED)


class GuardResult(Entry):
    """One test on one tree."""

    tree: str
    test: str
    targets: tuple[str, ...] = ()  # built before the test ran
    status: GuardStatus
    detail: str = ""
    seconds: float = Field(default=0.0, exclude=True)  # to build and run it; the same proof gives the same record

    @property
    def key(self) -> tuple[str, tuple[str, ...], str]:
        return self.tree, self.targets, self.test


class ResultCache:
    """All results of one toolchain, in one file."""

    def __init__(self, path: Path, toolchain: str) -> None:
        """Read the results recorded with that toolchain and those build arguments; none if the file is unreadable."""
        self.path, self.toolchain = path, toolchain
        self._results: dict[tuple[str, tuple[str, ...], str], GuardResult] = {}
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            if raw["toolchain"] == toolchain:
                found = [GuardResult.model_validate(row) for row in raw["results"]]
                self._results = {item.key: item for item in found}
        except (OSError, ValueError, KeyError, TypeError, ValidationError):
            pass

    def get(self, tree: str, targets: tuple[str, ...], test: str) -> GuardResult | None:
        return self._results.get((tree, targets, test))

    def add(self, result: GuardResult) -> GuardResult:
        """Record a result and write the file."""
        self._results[result.key] = result
        rows = [{**item.model_dump(mode="json"), "seconds": item.seconds} for _, item in sorted(self._results.items())]
        document = {"schema": 2, "toolchain": self.toolchain, "results": rows}
        fs.write_text(self.path, json.dumps(document, indent=1) + "\n")
        return result
