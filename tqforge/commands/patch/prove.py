"""`tqforge patch prove`: every prefix compiles and passes its cheap tests; each guard is red without its patch."""

from __future__ import annotations

import hashlib
import json
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
from tqforge.domain import (
    applying,
    building,
    buildlog,
    buildplan,
    metalguard,
    metalhost,
    proofs,
    series,
    source,
    walking,
)
from tqforge.domain.lock import Shelf
from tqforge.domain.manifest import load_base
from tqforge.domain.model import Base
from tqforge.domain.patchfile import parse
from tqforge.domain.proofs import Report
from tqforge.domain.proving import Bench, Ledger, Seen, Verdict
from tqforge.errors import ConfigError, ExitCode

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
        record = proofs.merged(proofs.document(report), path, report.titles)
        fs.write_text(path, json.dumps(record, indent=2) + "\n")
    _show(ctx, report)
    ctx.out.say(f"  record: {path}")
    ctx.out.document(proofs.document(report))
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
    rows = enumerate(zip(applied, chosen.patches, strict=True))
    every = [walking.Item(number, patch, parse(file.text)) for number, (patch, file) in rows]
    items = [item for item in every if item.patch.name in wanted]
    tests = frozenset(item.number for item in every if item.only_tests)
    with ctx.out.meter("prove") as meter:  # how long a step takes cannot be told from the ones before it
        steps = _Steps(ctx, meter, walking.length(items, prefixes=prefixes, guards=guards))
        walk = walking.Walk(applied, tests, _bench(ctx, base, repository, jobs, steps), steps)
        first = walk.prefixes(items) if prefixes else []
        second = walk.guards(items) if guards else []
    titles = tuple(patch.title for patch in chosen.patches)
    return Report(base, chosen.sha256, titles, applied[-1].tree, tuple(first), tuple(second))


@dataclass
class _Steps:
    """Tells a person how far the whole proof is, and Ninja within a step."""

    ctx: Context
    meter: Meter
    total: int
    done: int = 0

    def begin(self, label: str) -> None:
        self.done += 1
        self.total = max(self.total, self.done)
        self.ctx.out.step(f"{self.done}/{self.total} {label}")

    def end(self, seen: Seen, *, recorded: bool) -> None:
        how = "recorded" if recorded else f"{seen.seconds:.0f} s"
        detail = "" if seen.verdict is Verdict.GREEN else f" {seen.detail}"
        self.ctx.out.tell(f"  {seen.verdict} ({how}){detail}")

    def line(self, line: str) -> None:
        step = buildlog.step(line)
        what = f"{step.done}/{step.total} {step.what}" if step else line[:100]
        self.meter.update(self.done, f"({self.done}/{self.total}) {what}")


def _native_tests() -> str:
    """The version of the native tests: a result belongs to the very tests that ran."""
    digest = hashlib.sha256()
    for path in sorted(path for path in resources.native_tests().rglob("*") if path.is_file()):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _bench(ctx: Context, base: Base, repository: Repository, jobs: int | None, steps: _Steps) -> Bench:
    host, tools = toolchain.host(), toolchain.tools()
    options = buildplan.Options(native=False, metal=False, ccache=tools.ccache.path if tools.ccache else None)
    plan = buildplan.make(host, options, buildplan.Version(tree="0" * 12))
    folder = ctx.workspace.build(base.name, "prove")
    arguments = (*plan.arguments, _NO_COMMIT)
    # a file that asks with __has_include looks the same to ccache's direct mode whether the other one is there or not
    environment = {**building.environment(ctx), "CCACHE_NODIRECT": "1"}
    cmake = Tree(
        # laid out like a workspace: what `tqforge build` compiled is found again in ccache
        source=folder / "git" / base.name,
        folder=folder / "builds" / base.name / "prove",
        tools=tools,
        environment=environment,
    )
    cmake.end_orphans()
    return Bench(
        repository=repository,
        cmake=cmake,
        arguments=(*arguments, *plan.launchers),
        jobs=jobs or plan.jobs,
        ledger=Ledger.load(
            ctx.workspace.runs / "prove" / "ledger.json",
            " ".join((*arguments, tools.cxx.version, tools.cc.version, _native_tests())),
        ),
        progress=steps.line,
        metal=metalguard.MetalHost(
            builder=metalhost.Builder(
                project=resources.metal_dir(),
                folder=folder / "metal-host",
                tools=tools,
                jobs=jobs or plan.jobs,
                environment=environment,
            )
        ),
    )


def _show(ctx: Context, report: Report) -> None:
    if report.prefixes:
        table = _table("prefixes", "up to", "tree", "compiles, and passes", "")
        for patch, seen in report.prefixes:
            detail = "" if seen.verdict is Verdict.GREEN else f": {seen.detail}"
            table.add_row(patch, seen.tree[:12], seen.test.rpartition("; ")[2], f"{seen.verdict}{detail}")
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
