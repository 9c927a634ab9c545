"""Prove a series of the workspace: set up the runner, run the schedule, write the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqforge import resources
from tqforge.adapters import fs, toolchain
from tqforge.adapters.cmake import BuildTree
from tqforge.adapters.git import Repository
from tqforge.base import source
from tqforge.build import builder, cmake_plan, compiler_log, metal_emulator
from tqforge.core.reporter import Meter, Reporter
from tqforge.core.values import Base
from tqforge.errors import ConfigError
from tqforge.proof import schedule
from tqforge.proof.metal_guard import MetalEmulator
from tqforge.proof.record import ProofRecord, ProvenBase, merged
from tqforge.proof.results import GuardResult, GuardStatus, ResultCache
from tqforge.proof.runner import ProofRunner
from tqforge.series import apply, series
from tqforge.series.lock import SeriesPaths
from tqforge.series.patchfile import parse
from tqforge.series.series import Series
from tqforge.workspace import Workspace

#: A build of a proof does not know its commit: the same files give the same objects in every tree.
_NO_COMMIT = "-DGIT_EXE=OFF"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What to prove: patches by name (all if empty), prefixes and guards."""

    patches: Sequence[str] = ()
    prefixes: bool = True
    guards: bool = True
    jobs: int | None = None


def prove(
    workspace: Workspace, reporter: Reporter, base: Base, paths: SeriesPaths, selection: Selection
) -> tuple[ProofRecord, Path]:
    """Return the results of this run, and the record where they were added. The caller holds the workspace lock."""
    chosen = series.load(paths.folder)
    if not chosen.patches:
        raise ConfigError("There is no patch to prove.", where=str(paths.folder))
    wanted = {chosen.find(name).title for name in selection.patches} or {patch.title for patch in chosen.patches}
    repository, commit = source.ensure_base(workspace, reporter, base, source.ARCHIVE)
    every = _items(repository, commit, chosen)
    items = [item for item in every if item.title in wanted]
    with reporter.meter("prove") as meter:  # steps differ too much for an estimate of the time left
        steps = _Steps(reporter, meter, schedule.length(items, prefixes=selection.prefixes, guards=selection.guards))
        plan = schedule.Schedule(every, _runner(workspace, base, repository, selection.jobs, steps), steps)
        record = ProofRecord(
            base=ProvenBase(name=base.name, tree=base.tree),
            series_sha256=chosen.sha256,
            tree=every[-1].patch.tree,
            prefixes=plan.prefixes(items) if selection.prefixes else (),
            proofs=plan.guards(items) if selection.guards else (),
        )
    path = workspace.runs / "prove" / f"{record.tree[:12]}.json"
    fs.write_text(path, merged(record, path, [patch.title for patch in chosen.patches]).to_json())
    return record, path


def _items(repository: Repository, commit: str, chosen: Series) -> list[schedule.Item]:
    with apply.temporary_worktree(repository, "prove", commit) as work:
        applied = apply.commit_series(repository, work, chosen)
    rows = enumerate(zip(applied, chosen.patches, strict=True))
    return [schedule.Item(number, patch, parse(file.text)) for number, (patch, file) in rows]


@dataclass
class _Steps:
    """Shows the progress of the whole proof, and of Ninja within a step."""

    reporter: Reporter
    meter: Meter
    total: int
    done: int = 0

    def begin(self, label: str) -> None:
        self.done += 1
        self.total = max(self.total, self.done)
        self.reporter.step(f"{self.done}/{self.total} {label}")

    def end(self, result: GuardResult, *, recorded: bool) -> None:
        how = "recorded" if recorded else f"{result.seconds:.0f} s"
        detail = "" if result.status is GuardStatus.PASSED else f" {result.detail}"
        self.reporter.tell(f"  {result.status} ({how}){detail}")

    def line(self, line: str) -> None:
        step = compiler_log.step(line)
        what = f"{step.done}/{step.total} {step.what}" if step else line[:100]
        self.meter.update(self.done, f"({self.done}/{self.total}) {what}")


def _runner(workspace: Workspace, base: Base, repository: Repository, jobs: int | None, steps: _Steps) -> ProofRunner:
    host, tools = toolchain.host(), toolchain.tools()
    options = cmake_plan.Options(native=False, metal=False, ccache=tools.ccache.path if tools.ccache else None)
    plan = cmake_plan.make(host, options, cmake_plan.Version(tree="0" * 12))
    folder = workspace.build(base.name, "prove")
    arguments = (*plan.arguments, _NO_COMMIT)
    # a file that asks with __has_include looks the same to ccache's direct mode whether the other one is there or not
    environment = {**builder.environment(workspace), "CCACHE_NODIRECT": "1"}
    cmake = BuildTree(
        # laid out like a workspace: what `tqforge build` compiled is found again in ccache
        source=folder / "git" / base.name,
        folder=folder / "builds" / base.name / "prove",
        tools=tools,
        environment=environment,
    )
    cmake.end_orphans()
    metal = metal_emulator.Builder(
        project=resources.metal_dir(),
        folder=folder / "metal-emulator",
        tools=tools,
        jobs=jobs or plan.jobs,
        environment=environment,
    )
    return ProofRunner(
        repository=repository,
        cmake=cmake,
        arguments=(*arguments, *plan.launchers),
        jobs=jobs or plan.jobs,
        cache=ResultCache(
            workspace.runs / "prove" / "cache" / "results.json",
            " ".join((*arguments, tools.cxx.version, tools.cc.version)),
        ),
        progress=steps.line,
        metal=MetalEmulator(builder=metal),
    )
