"""`tqforge patch prove`: every prefix compiles and passes its cheap tests; each guard is red without its patch."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from tqforge import resources
from tqforge.adapters import fs, toolchain
from tqforge.adapters.cmake import Tree
from tqforge.adapters.git import Repository
from tqforge.context import Context
from tqforge.domain import applying, building, buildplan, dropping, metalguard, series, source
from tqforge.domain.lock import Shelf
from tqforge.domain.manifest import load_base
from tqforge.domain.model import AppliedPatch, Base
from tqforge.domain.patchfile import parse
from tqforge.domain.proving import Bench, Ledger, Seen, Verdict
from tqforge.domain.series import Series
from tqforge.domain.trailers import GUARD, Guard
from tqforge.errors import ConfigError, ExitCode

SCHEMA = "tqforge.prove/1"
#: What every prefix must compile, and the cheap tests that it must pass.
PREFIX_TARGETS = ("llama", "llama-bench", "llama-completion", "test-quantize-fns")
PREFIX_TEST = Guard("test-quantize-fns", ())
PROVEN = "proven"
TOGETHER = "cannot be dropped alone; red without it and"


@dataclass(frozen=True)
class Proof:
    """One guard of one patch."""

    patch: str
    guard: str
    with_it: Seen | None
    without_it: Seen | None
    how: str = ""
    note: str = ""
    needed_by: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`proven`, `deferred`, or what is wrong."""
        if self.with_it is None or self.with_it.verdict is Verdict.DEFERRED:
            return "deferred"
        if self.with_it.verdict is not Verdict.GREEN:
            return f"the guard is {self.with_it.verdict} with the patch"
        if self.without_it is None or self.without_it.verdict is Verdict.DEFERRED:
            return "deferred"
        if not self.without_it.verdict.is_red:
            return "the guard stays green without the patch"
        return f"{TOGETHER} {', '.join(self.needed_by)}" if self.needed_by else PROVEN

    @property
    def fails(self) -> bool:
        return self.verdict not in (PROVEN, "deferred") and not self.verdict.startswith(TOGETHER)


@dataclass(frozen=True)
class Report:
    """Everything one run of prove looked at."""

    base: Base
    series_sha256: str
    tree: str
    prefixes: tuple[tuple[str, Seen], ...]
    proofs: tuple[Proof, ...]

    @property
    def failures(self) -> int:
        return sum(seen.verdict is not Verdict.GREEN for _, seen in self.prefixes) + sum(p.fails for p in self.proofs)


def run(
    ctx: Context,
    *,
    base_name: str | None = None,
    patches: Path | None = None,
    only: Sequence[str] = (),
    prefixes: bool = True,
    guards: bool = True,
    jobs: int | None = None,
) -> int:
    """Prove the patches (all, or those named); 1 when a prefix or a guard falls short."""
    base = load_base(base_name)
    with ctx.workspace.lock("tqforge patch prove"):
        report = _prove(ctx, base, Shelf.of(base.name, patches), only, prefixes=prefixes, guards=guards, jobs=jobs)
        path = ctx.workspace.runs / "prove" / f"{report.tree[:12]}.json"
        fs.write_text(path, json.dumps(document(report), indent=2) + "\n")
    _show(ctx, report)
    ctx.out.say(f"  record: {path}")
    ctx.out.document(document(report))
    return int(ExitCode.CHECK_FAILED) if report.failures else 0


def _prove(
    ctx: Context, base: Base, shelf: Shelf, only: Sequence[str], *, prefixes: bool, guards: bool, jobs: int | None
) -> Report:
    chosen = series.load(shelf.folder)
    if not chosen.patches:
        raise ConfigError("There is no patch to prove.", where=str(shelf.folder))
    wanted = {chosen.find(name).name for name in only} or {patch.name for patch in chosen.patches}
    repository, commit = source.ensure_base(ctx, base, source.ARCHIVE)
    with applying.aside(repository, "prove", commit) as work:
        applied = applying.commit_series(repository, work, chosen)
    with ctx.out.meter("prove") as meter:
        bench = _bench(ctx, base, repository, jobs, lambda line: meter.update(0, line[:100]))
        numbers = [number for number, patch in enumerate(applied) if patch.name in wanted]
        first = [_prefix(ctx, bench, applied[number]) for number in numbers] if prefixes else []
        second = _guards(ctx, bench, chosen, applied, numbers) if guards else []
    return Report(base, chosen.sha256, applied[-1].tree, tuple(first), tuple(second))


def _bench(ctx: Context, base: Base, repository: Repository, jobs: int | None, progress: Any) -> Bench:
    host, tools = toolchain.host(), toolchain.tools()
    options = buildplan.Options(native=False, metal=False, ccache=tools.ccache.path if tools.ccache else None)
    plan = buildplan.make(host, options, buildplan.Version(tree="0" * 12))
    folder = ctx.workspace.build(base.name, "prove")
    key = " ".join((*plan.arguments, tools.cxx.version, tools.cc.version))
    return Bench(
        repository=repository,
        cmake=Tree(
            # laid out like a workspace: what `tqforge build` compiled is found again in ccache
            source=folder / "git" / base.name,
            folder=folder / "builds" / base.name / "prove",
            tools=tools,
            environment=building.environment(ctx),
        ),
        arguments=(*plan.arguments, *plan.launchers),
        jobs=jobs or plan.jobs,
        ledger=Ledger.load(ctx.workspace.runs / "prove" / "ledger.json", key),
        progress=progress,
        metal=metalguard.MetalHost(
            project=resources.metal_dir(),
            folder=folder / "metal-host",
            tools=tools,
            jobs=jobs or plan.jobs,
            environment=building.environment(ctx),
        ),
    )


def _prefix(ctx: Context, bench: Bench, patch: AppliedPatch) -> tuple[str, Seen]:
    ctx.out.step(f"prefix up to {patch.name}")
    name = f"prefix: {', '.join(PREFIX_TARGETS)}; {PREFIX_TEST}"
    seen = bench.see(patch.tree, name, PREFIX_TARGETS, run=PREFIX_TEST)
    ctx.out.say(f"  {seen.verdict} {seen.detail}")
    return patch.name.removesuffix(".patch"), seen


def _guards(
    ctx: Context, bench: Bench, chosen: Series, applied: tuple[AppliedPatch, ...], numbers: Sequence[int]
) -> list[Proof]:
    proofs = []
    with tempfile.TemporaryDirectory(prefix="tqforge-prove-") as scratch:
        for number in numbers:
            patch = chosen.patches[number]
            guards = [Guard.parse(value) for key, value in parse(patch.text).trailers if key == GUARD]
            variant = dropping.without(bench.repository, applied, number, Path(scratch))
            for guard in guards:
                ctx.out.step(f"{patch.title}: {guard}")
                proof = _proof(bench, patch.title, guard, applied[-1].tree, variant)
                ctx.out.say(f"  {proof.verdict}")
                proofs.append(proof)
    return proofs


def _proof(bench: Bench, title: str, guard: Guard, final: str, variant: dropping.Variant) -> Proof:
    targets = [metalguard.PROGRAM if guard.on_metal_host else guard.program]
    with_it = bench.see(final, str(guard), targets, run=guard)
    if with_it.verdict is Verdict.DEFERRED:
        return Proof(title, str(guard), with_it, None, note=with_it.detail)
    without_it = bench.see(variant.tree, str(guard), targets, run=guard)
    return Proof(title, str(guard), with_it, without_it, variant.how, needed_by=variant.blockers)


def document(report: Report) -> dict[str, Any]:
    """The JSON form, bound to tree ids."""
    return {
        "schema": SCHEMA,
        "base": {"name": report.base.name, "tree": report.base.tree},
        "series_sha256": report.series_sha256,
        "tree": report.tree,
        "prefixes": [{"patch": name, **_seen(seen)} for name, seen in report.prefixes],
        "proofs": [
            {
                "patch": proof.patch,
                "guard": proof.guard,
                "verdict": proof.verdict,
                "how": proof.how,
                "note": proof.note,
                "needed_by": list(proof.needed_by),
                "with": _seen(proof.with_it) if proof.with_it else None,
                "without": _seen(proof.without_it) if proof.without_it else None,
            }
            for proof in report.proofs
        ],
    }


def _seen(seen: Seen) -> dict[str, Any]:
    return {"tree": seen.tree, "test": seen.test, "verdict": str(seen.verdict), "detail": seen.detail}


def _show(ctx: Context, report: Report) -> None:
    if report.prefixes:
        table = Table(title="prefixes")
        for name in ("up to", "tree", "compiles and passes"):
            table.add_column(name, overflow="fold")
        for patch, seen in report.prefixes:
            table.add_row(patch, seen.tree[:12], f"{seen.verdict} {seen.detail if seen.verdict.is_red else ''}")
        ctx.out.show(table)
    if report.proofs:
        table = Table(title="guards")
        for name in ("patch", "guard", "with", "without", "proof"):
            table.add_column(name, overflow="fold")
        for proof in report.proofs:
            without = (
                f"{proof.without_it.verdict} ({proof.how}): {proof.without_it.detail}"
                if proof.without_it
                else proof.note
            )
            table.add_row(
                proof.patch, proof.guard, str(proof.with_it.verdict if proof.with_it else "-"), without, proof.verdict
            )
        ctx.out.show(table)
    ctx.out.show(f"tree {report.tree}: {report.failures} failures")
