"""Build the patched llama.cpp: configure, compile, load it and decode; or find the build that is already there."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqforge.adapters import proc, toolchain
from tqforge.adapters.cmake import BuildTree
from tqforge.base import models, source
from tqforge.build import cmake_plan, compiler_log, portable, smoke_test
from tqforge.build import stamp as stamps
from tqforge.build.cmake_plan import Options, Plan
from tqforge.build.stamp import LoadCheck, Stamp
from tqforge.core.reporter import Reporter
from tqforge.core.values import Base, Checkout, Host, Tools
from tqforge.errors import CrashError, DownloadError, LoadError
from tqforge.series import checkout
from tqforge.workspace import Workspace

#: Returns the model of the load check. Raises DownloadError when it is not available now.
ModelSource = Callable[[], Path]


@dataclass(frozen=True, kw_only=True)
class Built:
    """A finished build. Its library loads; whether it decoded is in `load`."""

    folder: Path
    stamp: Stamp
    reasons: tuple[str, ...] = ()  # why it was built now; empty when an earlier build was reused

    @property
    def bin(self) -> Path:
        """The folder of programs and libraries."""
        return self.folder / "bin"

    @property
    def load(self) -> LoadCheck:
        assert self.stamp.load is not None
        return self.stamp.load

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables with which llama-cpp-python of the matching release loads this build."""
        return {"LLAMA_CPP_LIB_PATH": str(self.bin)}

    @property
    def search_path(self) -> str:
        """PATH with the programs of this build first."""
        return f"{self.bin}{os.pathsep}{os.environ.get('PATH', '')}"

    def known_programs(self) -> set[str]:
        """Return the programs that this build has or can make, as named in Ninja's file."""
        text = (self.folder / "build.ninja").read_text(encoding="utf-8")
        return set(re.findall(r"^build bin/([\w.-]+): CXX_EXECUTABLE_LINKER", text, re.MULTILINE))


@dataclass(frozen=True, kw_only=True)
class _Job:
    """One build to make or to reuse."""

    workspace: Workspace
    reporter: Reporter
    prepared: Checkout
    host: Host
    tools: Tools
    plan: Plan

    @property
    def folder(self) -> Path:
        return self.workspace.build(self.prepared.base.name, self.plan.preset)


def environment(workspace: Workspace) -> dict[str, str | None]:
    """Return the changes to the environment of CMake and Ninja; ccache then hits across workspaces."""
    return {**dict(cmake_plan.environment()), "CCACHE_BASEDIR": str(workspace.root), "CCACHE_NOHASHDIR": "1"}


def ensure(
    workspace: Workspace, reporter: Reporter, base: Base, *, origin: str = source.ARCHIVE, options: Options
) -> tuple[Built, Checkout]:
    """Get the base, apply the series and build. The caller holds the workspace lock."""
    cmake_plan.refuse_impossible(toolchain.host(), options)
    toolchain.tools()  # raises before anything is downloaded
    prepared = checkout.prepare(workspace, reporter, base, source=origin)
    try:
        source.ensure_bindings(workspace, reporter, base)
    except DownloadError as error:
        reporter.warn(f"{error.what} Without the bindings of this base the library cannot be loaded now.")
    return build(workspace, reporter, prepared, options, lambda: models.fetch_default(workspace, reporter)), prepared


def build(workspace: Workspace, reporter: Reporter, prepared: Checkout, options: Options, model: ModelSource) -> Built:
    """Build the checkout for this machine, or reuse the last build. The caller holds the workspace lock.

    When a native build crashes on this processor, a portable one replaces it, and that is remembered.
    """
    host, tools = toolchain.host(), toolchain.tools()
    options = replace(options, ccache=tools.ccache.path if tools.ccache else None)
    why = portable.why_portable(workspace, host) if options.native is None else ""
    if why:
        reporter.tell(f"Portable instructions, because {why} (`tqforge build --native` tries again).")
    chosen = replace(options, native=False) if why else options
    version = cmake_plan.Version(tree=prepared.tree, build=prepared.base.build)
    plan = cmake_plan.make(host, chosen, version)
    job = _Job(workspace=workspace, reporter=reporter, prepared=prepared, host=host, tools=tools, plan=plan)
    try:
        built = _build(job, model)
    except CrashError as error:
        if not (smoke_test.is_processor_fault(error) and plan.native and options.native is None):
            raise
        reporter.warn(f"{error.what} Building again for any CPU; later builds on this machine will be portable too.")
        portable.remember_portable(workspace, host, f"a native build died of {error.signal} in its load check")
        return _build(replace(job, plan=cmake_plan.make(host, replace(options, native=False), version)), model)
    if options.native and built.load.status == "passed":
        portable.forget_portable(workspace, host)
    return built


def _build(job: _Job, model: ModelSource) -> Built:
    wanted = stamps.wanted(job.prepared, job.plan, job.tools)
    old = stamps.read(job.folder)
    begun = stamps.read(job.folder, stamps.BEGUN)
    reasons = stamps.reasons(old, wanted, job.folder, begun=begun is not None)
    if old and not reasons:
        stamp = old
    else:
        for reason in reasons:
            job.reporter.tell(f"  because {reason}")
        stamp = _compile(job, wanted, begun)
    if stamp.load is None or stamp.load.status == "skipped":
        stamp = stamp.model_copy(update={"load": _check(job, model)})
        stamps.write(job.folder, stamp)
    return Built(folder=job.folder, stamp=stamp, reasons=reasons)


def _check(job: _Job, model: ModelSource) -> LoadCheck:
    job.reporter.step("Loading the library in a child process and decoding with a tq3_0 cache")
    bindings = job.workspace.bindings(job.prepared.base.name)
    if not (bindings / "llama_cpp").is_dir():
        return LoadCheck(status="skipped", reason="The library was not loaded: its Python bindings are missing.")
    if job.plan.metal:
        job.reporter.tell("  the first launch compiles the Metal kernels; this can take a minute or two")
    request = smoke_test.Request(
        library=job.folder / "bin",
        bindings=bindings,
        log=job.folder / "load.log",
        metal=job.plan.metal,
        threads=job.host.cores,
    )
    return smoke_test.run(request, model, job.reporter)


def _compile(job: _Job, wanted: Stamp, begun: Stamp | None) -> Stamp:
    """Run CMake and Ninja. The folder has no stamp until they and the load check succeed."""
    (job.folder / stamps.STAMP).unlink(missing_ok=True)
    start = time.monotonic()
    tree = BuildTree(
        source=job.prepared.path, folder=job.folder, tools=job.tools, environment=environment(job.workspace)
    )
    if ended := tree.end_orphans():
        job.reporter.tell(f"  stopped {ended} compiler processes left by an interrupted run")
    cmake, cxx = job.tools.cmake.version, job.tools.cxx.version or "the C++ compiler"
    job.reporter.step(f"Configuring with CMake {cmake} and {cxx}")
    # CMake keeps what it found out about compilers and the source folder
    moved = begun is not None and (begun.compilers, begun.checkout) != (wanted.compilers, wanted.checkout)
    with job.reporter.meter("configuring"):
        _configure(tree, [*job.plan.arguments, *job.plan.launchers], fresh=moved)
    stamps.write(job.folder, wanted, stamps.BEGUN)
    how = f"{job.plan.preset}, {job.plan.instructions}, {job.plan.jobs} jobs{', ccache' if job.tools.ccache else ''}"
    job.reporter.step(f"Compiling {job.plan.version} ({how})")
    _ninja(job.reporter, tree, job.plan.targets, job.plan.jobs)
    files = [job.folder / "bin" / name for name in job.plan.targets if name != "llama"]
    files += [path for path in (job.folder / "bin").glob("lib*") if not path.is_symlink()]
    made = {"artefacts": stamps.describe(job.folder, files), "seconds": time.monotonic() - start}
    return wanted.model_copy(update=made)


def _configure(tree: BuildTree, arguments: Sequence[str], *, fresh: bool) -> None:
    try:
        tree.configure(arguments, fresh=fresh)
    except proc.ProcessError as error:
        raise compiler_log.explain(error, tree.configure_log) from error


def _ninja(reporter: Reporter, tree: BuildTree, targets: Sequence[str], jobs: int) -> None:
    with reporter.meter("compiling", 1.0) as meter:

        def progress(line: str) -> None:
            if step := compiler_log.step(line):
                meter.update(step.done / step.total, f"{step.done}/{step.total} {step.what}")

        try:
            tree.build(targets, jobs, progress)
        except proc.ProcessError as error:
            raise compiler_log.explain(error, tree.build_log) from error


def ensure_targets(workspace: Workspace, reporter: Reporter, built: Built, targets: Sequence[str]) -> None:
    """Build more targets of a build (test programs, ...). The caller holds the workspace lock."""
    tree = BuildTree(
        source=Path(built.stamp.checkout),
        folder=built.folder,
        tools=toolchain.tools(),
        environment=environment(workspace),
    )
    tree.end_orphans()
    if tree.lost_its_cmake or not tree.is_configured_with(cmake_plan.native_tests()):
        reporter.step("Configuring again: CMake or tqforge is in another place than when this build was configured")
        _configure(tree, [cmake_plan.native_tests()], fresh=False)  # CMake's cache holds the other options
    missing = [name for name in targets if not (built.bin / name).exists()]
    if missing:
        reporter.step(f"Building {', '.join(missing)}")
    _ninja(reporter, tree, targets, cmake_plan.jobs(toolchain.host()))


def find(workspace: Workspace, base: str, *, metal: bool | None = None) -> Built:
    """Return the finished build of a base that suits this machine. Raises LoadError when there is none."""
    host = toolchain.host()
    first = cmake_plan.preset(host, metal=cmake_plan.wants_metal(host, metal))
    found = {built.stamp.preset: built for built in all_builds(workspace, base)}
    chosen = found.get(first) or (next(iter(found.values()), None) if metal is None else None)
    if chosen is None:
        raise LoadError(
            f"There is no finished build of base '{base}'.",
            where=str(workspace.build(base, first)),
            remedy="Run `tqforge build`.",
        )
    return chosen


def all_builds(workspace: Workspace, base: str) -> list[Built]:
    """Return every finished build of a base in the workspace."""
    folders = sorted(workspace.build(base, "x").parent.glob("*"))
    found = [(folder, stamps.read(folder)) for folder in folders]
    return [Built(folder=folder, stamp=stamp) for folder, stamp in found if stamp and stamp.load]
