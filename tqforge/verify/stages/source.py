"""Check that the library under test is the one that lock and checkout describe."""

from __future__ import annotations

import re

from tqforge import resources
from tqforge.adapters import proc
from tqforge.adapters.git import Repository
from tqforge.report.schema.base import Check, StageStatus
from tqforge.report.schema.stages import CheckStage
from tqforge.series import lock
from tqforge.verify.session import Session, Target

_PROGRAMS = ("llama-cli", "llama-bench", "llama-server", "llama-perplexity")


def run(session: Session) -> CheckStage:
    """Compare the tree ids of lock, checkout, build and binaries."""
    target = session.target
    if target.checkout is None or not target.provenance.tree:
        return CheckStage(
            name="source",
            status=StageStatus.SKIPPED,
            reason="the library was given by its path: it is bound to no recorded build",
            remedy="Leave --library out to verify the build of `tqforge build`.",
        )
    checks = [*_checkout(target), _binary(target)]
    good = all(check.status is StageStatus.PASSED for check in checks)
    return CheckStage(name="source", checks=tuple(checks), remedy="" if good else "Run `tqforge build`.")


def _checkout(target: Target) -> list[Check]:
    assert target.checkout is not None
    locked = lock.read(resources.third_party() / lock.FILENAME).bases.get(target.provenance.base)
    repository = Repository(target.checkout)
    changes = repository.changes()
    return [
        _equal("lock = build", locked.final if locked else "no entry", target.provenance.tree),
        _equal("checkout = build", repository.tree("HEAD") or "none", target.provenance.tree),
        _equal("checkout is clean", "0 changes", f"{len(changes)} changes"),
    ]


def _equal(name: str, expected: str, observed: str) -> Check:
    good = expected == observed
    return Check(
        name=name,
        status=StageStatus.PASSED if good else StageStatus.FAILED,
        expected=expected,
        observed=observed,
        cases=1,
    )


def _binary(target: Target) -> Check:
    """Check the version printed by a program of the build, which names the tree."""
    name = "version in the binaries"
    program = next((path for word in _PROGRAMS if (path := target.library / word).exists()), None)
    if program is None:
        return Check(name=name, status=StageStatus.SKIPPED, reason="the build holds no program that prints its version")
    try:
        done = proc.run([program, "--version"], check=False, timeout=60)
    except (OSError, TimeoutError) as error:
        return Check(name=name, status=StageStatus.FAILED, observed=str(error))
    said = re.search(r"version: .*", done.stdout + done.stderr)
    shown = said[0] if said else done.tail(1)
    good = target.provenance.tree[:12] in shown
    return Check(
        name=name,
        status=StageStatus.PASSED if good else StageStatus.FAILED,
        expected=target.provenance.version,
        observed=f"{program.name}: {shown}",
        cases=1,
    )
