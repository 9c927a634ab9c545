"""The record of `tqforge patch prove`: written as JSON, and read back through the same models."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, computed_field

from tqforge.core.toml_file import Entry
from tqforge.proof.results import GuardResult, GuardStatus


class ProofOutcome(StrEnum):
    """What a guard test shows about its patch."""

    PROVEN = "proven"
    NEEDED = "needed by later patches"  # proven on the series before it
    SKIPPED = "skipped"
    USELESS = "passes without the patch"
    BROKEN = "does not pass with the patch"


class PrefixProof(Entry):
    """The series up to a patch compiles and passes a cheap test."""

    patch: str
    result: GuardResult


class GuardProof(BaseModel):
    """One guard test of one patch, on the whole series and without the patch."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # the outcome is written, and computed again when read

    patch: str
    guard: str
    with_patch: GuardResult
    without_patch: GuardResult | None
    how: str = ""  # how the tree without the patch was made
    note: str = ""  # why there is no result without the patch
    needed_by: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def outcome(self) -> ProofOutcome:
        if self.with_patch.status is GuardStatus.SKIPPED:
            return ProofOutcome.SKIPPED
        if self.with_patch.status is not GuardStatus.PASSED:
            return ProofOutcome.BROKEN
        if self.without_patch is None or self.without_patch.status is GuardStatus.SKIPPED:
            return ProofOutcome.SKIPPED
        if not self.without_patch.status.is_failure:
            return ProofOutcome.USELESS
        return ProofOutcome.NEEDED if self.needed_by else ProofOutcome.PROVEN

    @property
    def holds(self) -> bool:
        """Whether the test passes with the patch and fails without it."""
        return self.outcome in (ProofOutcome.PROVEN, ProofOutcome.NEEDED)

    @property
    def failed(self) -> bool:
        return self.outcome in (ProofOutcome.USELESS, ProofOutcome.BROKEN)

    def sentence(self) -> str:
        """Return the outcome with its reason, for a table."""
        if self.outcome is ProofOutcome.NEEDED:
            return f"proven on the series before it; needed by {', '.join(self.needed_by)}"
        return f"with the patch: {self.with_patch.status}" if self.outcome is ProofOutcome.BROKEN else str(self.outcome)

    def without(self) -> str:
        """Return the result without the patch, or why there is none."""
        if self.without_patch is None:
            return self.note
        return f"{self.without_patch.status} ({self.how}): {self.without_patch.detail}"


class ProvenBase(Entry):
    """The base of the series."""

    name: str
    tree: str


class ProofRecord(Entry):
    """All results of a series, bound to its tree."""

    schema_: Literal["tqforge.prove/2"] = "tqforge.prove/2"
    base: ProvenBase
    series_sha256: str
    tree: str
    prefixes: tuple[PrefixProof, ...] = ()
    proofs: tuple[GuardProof, ...] = ()

    @property
    def failures(self) -> int:
        good = (GuardStatus.PASSED, GuardStatus.SKIPPED)
        return sum(row.result.status not in good for row in self.prefixes) + sum(row.failed for row in self.proofs)

    @property
    def skipped(self) -> int:
        prefixes = sum(row.result.status is GuardStatus.SKIPPED for row in self.prefixes)
        return prefixes + sum(row.outcome is ProofOutcome.SKIPPED for row in self.proofs)

    @property
    def seconds(self) -> float:
        """The time to build and run every result once, in this run or an earlier one."""
        results = {row.result.key: row.result for row in self.prefixes}
        for row in self.proofs:
            results |= {item.key: item for item in (row.with_patch, row.without_patch) if item}
        return sum(item.seconds for item in results.values())

    def to_json(self) -> str:
        return self.model_dump_json(indent=2, by_alias=True) + "\n"


_Row = TypeVar("_Row", bound=PrefixProof | GuardProof)


def merged(new: ProofRecord, path: Path, order: Sequence[str]) -> ProofRecord:
    """Add the patches that this run left out, from an earlier record of the same series."""
    try:
        old = ProofRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return new
    if (old.base, old.series_sha256, old.tree) != (new.base, new.series_sha256, new.tree):
        return new

    def both(fresh: tuple[_Row, ...], kept: tuple[_Row, ...]) -> tuple[_Row, ...]:
        names = {row.patch for row in fresh}
        rows = [*fresh, *(row for row in kept if row.patch not in names)]
        return tuple(sorted(rows, key=lambda row: order.index(row.patch)))

    update = {"prefixes": both(new.prefixes, old.prefixes), "proofs": both(new.proofs, old.proofs)}
    return new.model_copy(update=update)
