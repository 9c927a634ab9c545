"""`tqforge patch prove`: every prefix compiles and passes its cheap tests; each guard is red without its patch."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from tqforge import resources
from tqforge.adapters import fs, toolchain
from tqforge.adapters.cmake import Tree
from tqforge.adapters.console import Meter
from tqforge.adapters.git import Repository
from tqforge.context import Context
from tqforge.domain import applying, building, buildlog, buildplan, dropping, metalguard, series, source
from tqforge.domain.lock import Shelf
from tqforge.domain.manifest import load_base
from tqforge.domain.model import AppliedPatch, Base
from tqforge.domain.patchfile import parse
from tqforge.domain.proofs import Proof, Report, document
from tqforge.domain.proving import Bench, Ledger, Seen, Verdict
from tqforge.domain.trailers import GUARD, Guard
from tqforge.errors import ConfigError, ExitCode

#: What every prefix must compile, and the cheap tests that it must pass.
PREFIX_TARGETS = ("llama", "llama-bench", "llama-completion", "test-quantize-fns")
PREFIX_TEST = Guard("test-quantize-fns", ())
#: A build of a proof does not know its commit: the same files give the same objects in every tree.
_NO_COMMIT = "-DGIT_EXE=OFF"


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
    numbers = [number for number, patch in enumerate(applied) if patch.name in wanted]
    tests = [
        (number, Guard.parse(value))
        for number in numbers
        for key, value in parse(chosen.patches[number].text).trailers
        if key == GUARD
    ]
    total = len(numbers) * prefixes + 2 * len(tests) * guards
    with ctx.out.meter("prove") as meter:  # how long a step takes cannot be told from the ones before it
        steps = _Steps(meter, total)
        walk = _Walk(ctx, steps, applied, _bench(ctx, base, repository, jobs, steps))
        first = walk.prefixes(numbers) if prefixes else []
        second = walk.guards(tests) if guards else []
    return Report(base, chosen.sha256, applied[-1].tree, tuple(first), tuple(second))


@dataclass
class _Steps:
    """How far the whole proof is, and Ninja within a step."""

    meter: Meter
    total: int
    done: int = 0

    def next(self, ctx: Context, title: str) -> None:
        self.done += 1
        ctx.out.step(f"{self.done}/{self.total} {title}")

    def line(self, line: str) -> None:
        step = buildlog.step(line)
        what = f"{step.done}/{step.total} {step.what}" if step else line[:100]
        self.meter.update(self.done, f"({self.done}/{self.total}) {what}")


class _Walk:
    """The trees one after the other in one build folder: prefixes, the whole series with every guard, then the drops.

    Neighbours differ in few files, so that little is compiled between them.
    """

    def __init__(self, ctx: Context, steps: _Steps, applied: Sequence[AppliedPatch], bench: Bench) -> None:
        self.ctx, self.steps, self.applied, self.bench = ctx, steps, applied, bench

    def prefixes(self, numbers: Sequence[int]) -> list[tuple[str, Seen]]:
        """Each prefix compiles and passes the cheap tests."""
        found = []
        test = f"prefix: {', '.join(PREFIX_TARGETS)}; {PREFIX_TEST}"
        for number in numbers:
            patch = self.applied[number]
            seen = self._see(f"prefix up to {patch.name}", patch.tree, test, PREFIX_TARGETS, PREFIX_TEST)
            found.append((_title(patch), seen))
        return found

    def guards(self, tests: Sequence[tuple[int, Guard]]) -> list[Proof]:
        """Each guard on the whole series, then without its patch."""
        final = self.applied[-1].tree
        whole = [self._guard(f"{guard} with {_title(self.applied[number])}", final, guard) for number, guard in tests]
        proofs = []
        with tempfile.TemporaryDirectory(prefix="tqforge-prove-") as scratch:
            for (number, guard), with_it in zip(tests, whole, strict=True):
                title = _title(self.applied[number])
                variant = dropping.without(self.bench.repository, self.applied, number, Path(scratch))
                label = f"{guard} without {title}"
                if with_it.verdict is not Verdict.GREEN:
                    self.steps.next(self.ctx, f"{label}: not run, because it is {with_it.verdict} with it")
                    proofs.append(Proof(title, str(guard), with_it, None, note=with_it.detail))
                    continue
                without_it = self._guard(label, variant.tree, guard)
                proofs.append(Proof(title, str(guard), with_it, without_it, variant.how, needed_by=variant.blockers))
        return proofs

    def _guard(self, label: str, tree: str, guard: Guard) -> Seen:
        targets = [metalguard.PROGRAM if guard.on_metal_host else guard.program]
        return self._see(label, tree, self.bench.name(guard), targets, guard)

    def _see(self, label: str, tree: str, test: str, targets: Sequence[str], guard: Guard) -> Seen:
        self.steps.next(self.ctx, label)
        known = self.bench.ledger.get(tree, test)
        seen = known or self.bench.see(tree, test, targets, run=guard)
        how = "recorded" if known else f"{seen.seconds:.0f} s"
        self.ctx.out.tell(
            f"  {seen.verdict} ({how}) {seen.detail if seen.verdict is not Verdict.GREEN else ''}".rstrip()
        )
        return seen


def _title(patch: AppliedPatch) -> str:
    return patch.name.removesuffix(".patch")


def _bench(ctx: Context, base: Base, repository: Repository, jobs: int | None, steps: _Steps) -> Bench:
    host, tools = toolchain.host(), toolchain.tools()
    options = buildplan.Options(native=False, metal=False, ccache=tools.ccache.path if tools.ccache else None)
    plan = buildplan.make(host, options, buildplan.Version(tree="0" * 12))
    folder = ctx.workspace.build(base.name, "prove")
    arguments = (*plan.arguments, _NO_COMMIT)
    return Bench(
        repository=repository,
        cmake=Tree(
            # laid out like a workspace: what `tqforge build` compiled is found again in ccache
            source=folder / "git" / base.name,
            folder=folder / "builds" / base.name / "prove",
            tools=tools,
            environment=building.environment(ctx),
        ),
        arguments=(*arguments, *plan.launchers),
        jobs=jobs or plan.jobs,
        ledger=Ledger.load(
            ctx.workspace.runs / "prove" / "ledger.json", " ".join((*arguments, tools.cxx.version, tools.cc.version))
        ),
        progress=steps.line,
        metal=metalguard.MetalHost(
            project=resources.metal_dir(),
            folder=folder / "metal-host",
            tools=tools,
            jobs=jobs or plan.jobs,
            environment=building.environment(ctx),
        ),
    )


def _show(ctx: Context, report: Report) -> None:
    if report.prefixes:
        table = _table("prefixes", "up to", "tree", "compiles and passes")
        for patch, seen in report.prefixes:
            table.add_row(patch, seen.tree[:12], f"{seen.verdict} {seen.detail if seen.verdict.is_red else ''}")
        ctx.out.show(table)
    if report.proofs:
        table = _table("guards", "patch", "guard", "with", "without", "proof")
        for proof in report.proofs:
            with_it = str(proof.with_it.verdict if proof.with_it else "-")
            table.add_row(proof.patch, proof.guard, with_it, proof.without, proof.verdict)
        ctx.out.show(table)
    deferred = f", {report.deferred} deferred" if report.deferred else ""
    ctx.out.show(f"tree {report.tree}: {report.failures} failures{deferred}; {report.seconds:.0f} s of work")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table
