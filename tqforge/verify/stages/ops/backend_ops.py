"""Choose the cases of upstream's test-backend-ops and parse its output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tqforge.build import metal_emulator
from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import Pair
from tqforge.report.schema.rows import OpsRow

PROGRAM = "test-backend-ops"
#: A stock type whose ops are tested the same way.
REFERENCE_OP_TYPE = "q4_0"
#: The pairs that Metal's fused attention takes, and a stock one that is tested the same way.
PAIRS = (Pair.both(TQ3_0), Pair("q8_0", TQ3_0), Pair("f16", TQ3_0), Pair.both(REFERENCE_OP_TYPE))

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CASE = re.compile(r"^  ([A-Z0-9_]+\(.*?\)):")
_SUMMARY = re.compile(r"^  (\d+)/(\d+) tests passed$", re.MULTILINE)
_NMSE = re.compile(r"^(ok|FAIL)\s+(.*?)\s+nmse (\S+) \(limit \S+\)", re.MULTILINE)


@dataclass(frozen=True)
class Job:
    """One run of the program: an op, and the cases that `pattern` selects."""

    op: str
    of: str  # the type, or the pair
    pattern: str

    @property
    def title(self) -> str:
        return f"{self.op} {self.of}"


def plan(heads: Sequence[int]) -> list[Job]:
    """Reading, writing and converting rows of the type and of its control, then attention at these head sizes.

    No head sizes: all that upstream has; the control keeps to its own.
    """
    jobs = []
    for name in (TQ3_0, REFERENCE_OP_TYPE):
        jobs += [
            Job("SET_ROWS", name, f"type(_dst)?={name},"),
            Job("GET_ROWS", name, f"type={name},"),
            Job("CPY", name, f"type_(src|dst)={name},"),
        ]
    for pair in PAIRS:
        sizes = _sizes(heads or (metal_emulator.CONTROL_HEADS if pair.k == REFERENCE_OP_TYPE else ()))
        jobs.append(Job("FLASH_ATTN_EXT", str(pair), f"{sizes}type_K={pair.k},type_V={pair.v},"))
    return jobs


def _sizes(heads: Sequence[int]) -> str:
    some = "|".join(str(head) for head in heads)
    return f"hsk=({some}),hsv=({some}),.*" if some else ""


def arguments(job: Job, device: str) -> list[str]:
    return ["test", "-b", device, "-o", job.op, "-p", job.pattern]


@dataclass(frozen=True)
class Said:
    """The parsed output of one run. `unfinished` is the case it died in; `complete` means that the counts agree."""

    passed: int = 0
    failed: int = 0
    unsupported: int = 0
    complete: bool = False
    wrong: tuple[str, ...] = ()
    unfinished: str = ""


def parse(text: str) -> Said:
    """Count the cases and compare with the program's own count."""
    clean = _COLOUR.sub("", text)
    passed = failed = unsupported = 0
    wrong: list[str] = []
    unfinished = ""
    for line in clean.splitlines():
        case = _CASE.match(line)
        if not case:
            continue
        unfinished = ""
        rest = line[case.end() :].rstrip()
        if rest.endswith("OK"):
            passed += 1
        elif rest.endswith("FAIL"):
            failed += 1
            wrong.append(f"{case[1]}{rest.removesuffix('FAIL')}".strip())
        elif "not supported" in rest:
            unsupported += 1
        elif "skipping" not in rest:
            unfinished = case[1]
    summary = _SUMMARY.search(clean)
    agreed = summary is not None and (int(summary[1]), int(summary[2])) == (passed, passed + failed)
    return Said(passed, failed, unsupported, agreed, tuple(wrong), unfinished)


def row(job: Job, backend: str, said: Said, how: str, *, dispatches: int | None, seconds: float) -> OpsRow:
    """The row of one run. `how` is what the process itself ended with, where that was not well.

    A case the program died in counts as wrong; so does a run that no case came out of.
    """
    notes = [how] if how else []
    if said.wrong:
        notes.append(f"first wrong: {said.wrong[0]}")
    if said.unfinished:
        notes.append(f"ended in {said.unfinished}")
    elif not said.complete:
        notes.append("its own count of the cases is missing or another one")
    if dispatches == 0:
        notes.append("nothing was dispatched")
    return OpsRow(
        backend=backend,
        op=job.title,
        passed=said.passed,
        failed=said.failed + bool(said.unfinished),
        unsupported=said.unsupported,
        dispatches=dispatches,
        filter=job.pattern,
        seconds=round(seconds, 1),
        note="; ".join(notes),
    )


@dataclass(frozen=True)
class Errors:
    """NMSE of the emulator's own cases against float64."""

    passed: int
    failed: int
    worst: float | None
    mean: float | None


def parse_direct(text: str) -> Errors:
    """What `metal-emulator-direct` printed, one line per case."""
    found = [(word, float(value)) for word, _, value in _NMSE.findall(text)]
    values = [value for _, value in found]
    return Errors(
        passed=sum(word == "ok" for word, _ in found),
        failed=sum(word == "FAIL" for word, _ in found),
        worst=max(values, default=None),
        mean=sum(values) / len(values) if values else None,
    )
