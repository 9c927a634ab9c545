"""Upstream's own test of single ops: on the CPU, and on Metal or the Metal emulator, beside a stock type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters import proc
from tqforge.adapters.llama import emulator_report
from tqforge.core import emulator
from tqforge.core.reporter import Meter
from tqforge.report.schema.rows import OpsRow
from tqforge.report.schema.stages import OpsStage
from tqforge.verify import device
from tqforge.verify.device import Device
from tqforge.verify.session import Session, SkippedError
from tqforge.verify.stages.ops import backend_ops
from tqforge.verify.stages.ops.backend_ops import Job

_TIMEOUT = 7200.0
#: After the asked cases the program would force every variant of the vec kernels of f16 and q4_0, which are not ours.
_NO_SLICES: dict[str, str | None] = {"LLAMA_TEST_FA_VEC_DISABLE": "1"}
_METHOD = (
    "test-backend-ops computes the same op on the named backend and on the CPU and compares the normalized mean square "
    "error with its own limit; `refused` are cases that the backend does not claim to support. On the Metal emulator "
    "the tree's Metal kernels are executed on the CPU through llama.cpp's own dispatch code: that shows results, "
    "missing kernels and faults of access, not speed and not whether Apple's compiler takes the sources. Rows with an "
    "NMSE are the emulator's own cases against float64, each access watched, the stock type beside ours."
)


def run(session: Session) -> OpsStage:
    """Run the CPU part, then the device if there is one."""
    program = device.programs(session).program(backend_ops.PROGRAM)
    jobs = backend_ops.plan(session.settings.ops_heads)
    rows: list[OpsRow] = []
    there, missing, remedy = _device(session)
    with session.meter("ops", len(jobs) * (4 if there else 1) + (len(backend_ops.PAIRS) if there else 0)) as meter:
        bench = _Bench(session, program, meter)
        rows += [bench.row(job, None, 1) for job in jobs]
        for job in jobs if there else ():
            rows.append(bench.row(job, there, 3))
            session.partial(_stage(rows, missing, remedy))
        if there and there.is_emulator:
            rows += [bench.against_float64(there, str(pair)) for pair in backend_ops.PAIRS]
    return _stage(rows, missing, remedy)


def _device(session: Session) -> tuple[Device | None, str, str]:
    """Return the device, or why there is none and what to do about it."""
    try:
        return device.find(session), "", ""
    except SkippedError as put_off:
        return None, put_off.reason, put_off.remedy


@dataclass
class _Bench:
    """Runs the programs; how a run ends is part of its row, never an exception."""

    session: Session
    program: Path
    meter: Meter
    done: float = 0.0

    def row(self, job: Job, there: Device | None, weight: float) -> OpsRow:
        """Run test-backend-ops on a device, or on the CPU without one."""
        name, title = (device.NAME, there.title) if there else ("CPU", "CPU")
        seen = 0

        def progress(line: str) -> None:
            nonlocal seen
            seen += line.startswith("  ") and "(" in line
            self.meter.update(self.done + weight * (1 - 0.99**seen), f"{title}: {job.title}, {seen} cases")

        self.meter.update(self.done, f"{title}: {job.title}")
        argv = [str(self.program), *backend_ops.arguments(job, name)]
        finished, how, dispatches = self._run(argv, there, "fast", progress)
        said = backend_ops.parse(finished.stdout)
        self.done += weight
        return backend_ops.row(job, title, said, how, dispatches=dispatches, seconds=finished.seconds)

    def against_float64(self, there: Device, pair: str) -> OpsRow:
        """The emulator's own cases in its checking variant: one buffer per tensor."""
        assert there.folder is not None
        self.meter.update(self.done, f"against float64: {pair}")
        argv = [str(there.folder / emulator.DIRECT), "--pair", pair, "--suite", "vec", "--suite", "matrix"]
        finished, how, dispatches = self._run(argv, there, "check", lambda _: None)
        self.done += 1
        found = backend_ops.parse_direct(finished.stdout)
        return OpsRow(
            backend=f"{there.title}, every access watched",
            op=f"FLASH_ATTN_EXT {pair}",
            passed=found.passed,
            failed=found.failed,
            unsupported=0,
            worst_nmse=found.worst,
            mean_nmse=found.mean,
            dispatches=dispatches,
            seconds=round(finished.seconds, 1),
            note=how,
        )

    def _run(
        self, argv: Sequence[str], there: Device | None, variant: str, on_line: Callable[[str], None]
    ) -> tuple[proc.Completed, str, int | None]:
        """The run, what went wrong with it, and what the Metal emulator dispatched."""
        report = self.session.folder / "metal-emulator.json"
        report.unlink(missing_ok=True)
        env = _NO_SLICES | (there.environment(report, variant) if there else {})
        done = proc.run(argv, env=env, check=False, timeout=_TIMEOUT, on_line=on_line)
        how = [done.signal_name or (f"exit status {done.code}" if done.code else "")]
        if there is None or not there.is_emulator:
            return done, how[0], None
        found = emulator_report.read(report)
        report.unlink(missing_ok=True)
        return done, "; ".join(filter(None, [*how, emulator_report.faults(found)])), emulator_report.dispatched(found)


def _stage(rows: Sequence[OpsRow], missing: str, remedy: str) -> OpsStage:
    notes = (_METHOD, *((f"Only the CPU part ran: {missing}.",) if missing else ()))
    return OpsStage(remedy=remedy, rows=tuple(rows), no_device=missing, notes=notes)
