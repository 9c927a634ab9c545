"""Configure, compile, load, decode; or find that all of it was done before."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqforge.adapters import proc, toolchain
from tqforge.adapters.cmake import Tree
from tqforge.build import cmake_plan, compiler_log, portable, smoke_test
from tqforge.build import stamp as buildstamp
from tqforge.build.cmake_plan import Options, Plan
from tqforge.build.stamp import LoadCheck, Stamp
from tqforge.context import Context
from tqforge.core.values import Checkout, Host, Tools
from tqforge.errors import BuildError, CrashError, DiskFullError, LoadError, ToolchainError, TqforgeError

#: Gives the model of the load check, or raises DownloadError when it cannot be had now.
ModelSource = Callable[[], Path]


@dataclass(frozen=True, kw_only=True)
class Built:
    """A build that loads and decodes (or whose decoding was put off, see `stamp.load`)."""

    folder: Path
    stamp: Stamp
    reasons: tuple[str, ...] = ()  # why it was built now; empty when it was used again

    @property
    def bin(self) -> Path:
        """Programs and libraries."""
        return self.folder / "bin"

    @property
    def load(self) -> LoadCheck:
        assert self.stamp.load is not None
        return self.stamp.load


@dataclass(frozen=True, kw_only=True)
class _Job:
    """One build in the making."""

    ctx: Context
    prepared: Checkout
    host: Host
    tools: Tools
    plan: Plan

    @property
    def folder(self) -> Path:
        return self.ctx.workspace.build(self.prepared.base.name, self.plan.preset)

    @property
    def tree(self) -> Tree:
        return Tree(
            source=self.prepared.path,
            folder=self.folder,
            tools=self.tools,
            environment=environment(self.ctx),
        )


def environment(ctx: Context) -> dict[str, str | None]:
    """ccache then sees the same commands in every workspace."""
    return {**dict(cmake_plan.environment()), "CCACHE_BASEDIR": str(ctx.workspace.root), "CCACHE_NOHASHDIR": "1"}


def preflight(options: Options) -> None:
    """Say what cannot work before anything is fetched. Raises PlatformError, ToolchainError."""
    cmake_plan.refuse_impossible(toolchain.host(), options)
    toolchain.tools()


def build(ctx: Context, prepared: Checkout, options: Options, model: ModelSource) -> Built:
    """Build the checkout for this machine, or use the last build again. The caller holds the workspace lock.

    A native build that this processor does not run is replaced by a portable one, and remembered.
    """
    host, tools = toolchain.host(), toolchain.tools()
    options = _with_memory(ctx, host, options, tools)
    job = _job(ctx, prepared, host, tools, options)
    try:
        built = _build(job, model)
    except CrashError as error:
        if not (smoke_test.is_processor_fault(error) and job.plan.native and options.native is None):
            raise
        ctx.out.warn(
            f"{error.what} Building again with portable instructions; this machine will get those from now on."
        )
        portable.remember_portable(ctx.workspace, host, f"a native build died of {error.signal} in its load check")
        return _build(_job(ctx, prepared, host, tools, replace(options, native=False)), model)
    if options.native and built.load.status == "passed":
        portable.forget_portable(ctx.workspace, host)
    return built


def _with_memory(ctx: Context, host: Host, options: Options, tools: Tools) -> Options:
    options = replace(options, ccache=tools.ccache.path if tools.ccache else None)
    why = portable.why_portable(ctx.workspace, host) if options.native is None else ""
    if not why:
        return options
    ctx.out.tell(f"Portable instructions, because {why} on this machine (`tqforge build --native` tries again).")
    return replace(options, native=False)


def _job(ctx: Context, prepared: Checkout, host: Host, tools: Tools, options: Options) -> _Job:
    version = cmake_plan.Version(tree=prepared.tree, build=prepared.base.build)
    return _Job(ctx=ctx, prepared=prepared, host=host, tools=tools, plan=cmake_plan.make(host, options, version))


def _build(job: _Job, model: ModelSource) -> Built:
    wanted = buildstamp.wanted(job.prepared, job.plan, job.tools)
    old = buildstamp.read(job.folder)
    begun = buildstamp.read(job.folder, buildstamp.BEGUN)
    reasons = buildstamp.reasons(old, wanted, job.folder, begun=begun is not None)
    if old and not reasons:
        return _reuse(job, old, model)
    for reason in reasons:
        job.ctx.out.tell(f"  because {reason}")
    stamp = _compile(job, wanted, begun)
    checked = _check(job, model)
    stamp = stamp.model_copy(update={"load": checked})
    buildstamp.write(job.folder, stamp)
    return Built(folder=job.folder, stamp=stamp, reasons=reasons)


def _reuse(job: _Job, stamp: Stamp, model: ModelSource) -> Built:
    if stamp.load is None or stamp.load.status == "deferred":
        stamp = stamp.model_copy(update={"load": _check(job, model)})
        buildstamp.write(job.folder, stamp)
    return Built(folder=job.folder, stamp=stamp)


def _check(job: _Job, model: ModelSource) -> LoadCheck:
    job.ctx.out.step("Loading the library in a child process and decoding with a tq3_0 cache")
    bindings = job.ctx.workspace.bindings(job.prepared.base.name)
    if not (bindings / "llama_cpp").is_dir():
        return LoadCheck(status="deferred", reason="the library was not loaded, because its bindings are not at hand")
    if job.plan.metal:
        job.ctx.out.say("  the first launch compiles the Metal kernels; this can take a minute or two")
    request = smoke_test.Request(
        library=job.folder / "bin",
        bindings=bindings,
        log=job.folder / "load.log",
        metal=job.plan.metal,
        threads=job.host.cores,
    )
    return smoke_test.run(request, model, job.ctx.out)


def _compile(job: _Job, wanted: Stamp, begun: Stamp | None) -> Stamp:
    """From here until the new stamp is written nothing in the folder is trusted."""
    (job.folder / buildstamp.STAMP).unlink(missing_ok=True)
    start = time.monotonic()
    tree = job.tree
    if ended := tree.end_orphans():
        job.ctx.out.tell(f"  ended {ended} compilers that a killed tqforge had left at work")
    _configure(job, tree, fresh=begun is not None and _needs_fresh(begun, wanted))
    buildstamp.write(job.folder, wanted, buildstamp.BEGUN)
    how = f"{job.plan.preset}, {job.plan.instructions}, {job.plan.jobs} jobs{', ccache' if job.tools.ccache else ''}"
    job.ctx.out.step(f"Compiling {job.plan.version} ({how})")
    _ninja(job.ctx, tree, job.plan.targets, job.plan.jobs)
    files = [job.folder / "bin" / name for name in job.plan.targets if name != "llama"]
    files += [path for path in (job.folder / "bin").glob("lib*") if not path.is_symlink()]
    return wanted.model_copy(
        update={"artefacts": buildstamp.describe(job.folder, files), "seconds": time.monotonic() - start}
    )


def _needs_fresh(begun: Stamp, wanted: Stamp) -> bool:
    """CMake keeps what it learned about compilers and the source folder, and cannot change its mind about them."""
    return begun.compilers != wanted.compilers or begun.checkout != wanted.checkout


def _configure(job: _Job, tree: Tree, *, fresh: bool) -> None:
    job.ctx.out.step(
        f"Configuring with CMake {job.tools.cmake.version} and {job.tools.cxx.version or 'the C++ compiler'}"
    )
    try:
        with job.ctx.out.meter("configuring"):
            tree.configure([*job.plan.arguments, *job.plan.launchers], fresh=fresh)
    except proc.ProcessError as error:
        raise explain(error, tree.configure_log) from error


def _ninja(ctx: Context, tree: Tree, targets: Sequence[str], jobs: int) -> None:
    with ctx.out.meter("compiling", 1.0) as meter:

        def progress(line: str) -> None:
            if step := compiler_log.step(line):
                meter.update(step.done / step.total, f"{step.done}/{step.total} {step.what}")

        try:
            tree.build(targets, jobs, progress)
        except proc.ProcessError as error:
            raise explain(error, tree.build_log) from error


def ensure_targets(ctx: Context, built: Built, targets: Sequence[str]) -> None:
    """Build further targets of that build (test programs, ...). The caller holds the workspace lock."""
    tree = Tree(
        source=Path(built.stamp.checkout),
        folder=built.folder,
        tools=toolchain.tools(),
        environment=environment(ctx),
    )
    tree.end_orphans()
    if tree.lost_its_cmake:
        ctx.out.step("Configuring again: the CMake that configured this build is gone")
        _reconfigure(tree)
    missing = [name for name in targets if not (built.bin / name).exists()]
    if missing:
        ctx.out.step(f"Building {', '.join(missing)}")
    _ninja(ctx, tree, targets, cmake_plan.jobs(toolchain.host()))


def _reconfigure(tree: Tree) -> None:
    """With the options that CMake's own cache holds."""
    try:
        tree.configure([], fresh=False)
    except proc.ProcessError as error:
        raise explain(error, tree.configure_log) from error


def known_programs(built: Built) -> set[str]:
    """Every program that this build has or can make, as Ninja's own file names them."""
    text = (built.folder / "build.ninja").read_text(encoding="utf-8")
    return set(re.findall(r"^build bin/([\w.-]+): CXX_EXECUTABLE_LINKER", text, re.MULTILINE))


def find(ctx: Context, base: str, *, metal: bool | None = None) -> Built:
    """The finished build of a base that this machine would use. Raises LoadError when there is none."""
    host = toolchain.host()
    first = cmake_plan.preset(host, metal=cmake_plan.wants_metal(host, metal))
    found = {built.stamp.preset: built for built in all_builds(ctx, base)}
    chosen = found.get(first) or (next(iter(found.values()), None) if metal is None else None)
    if chosen is None:
        raise LoadError(
            f"There is no finished build of base '{base}'.",
            where=str(ctx.workspace.build(base, first)),
            remedy="Run `tqforge build`.",
        )
    return chosen


def all_builds(ctx: Context, base: str) -> list[Built]:
    """Every finished build of a base in the workspace."""
    folders = sorted(ctx.workspace.build(base, "x").parent.glob("*"))
    stamps = [(folder, buildstamp.read(folder)) for folder in folders]
    return [Built(folder=folder, stamp=stamp) for folder, stamp in stamps if stamp and stamp.load]


def explain(error: proc.ProcessError, log: Path) -> TqforgeError:
    """The first real error of a failed CMake or Ninja run as the error of its class."""
    if error.done.signal_name:
        return BuildError(f"{Path(error.done.argv[0]).name} was ended by {error.done.signal_name}.", where=str(log))
    failure = compiler_log.first_error(error.done.stdout)
    remedy = f"The whole log is {log}"
    if failure.cause == "disk":
        return DiskFullError("The disk is full.", where=failure.where or str(log))
    if failure.cause == "toolchain":
        return ToolchainError(failure.what, where=str(log), remedy=toolchain.compiler_remedy())
    if failure.cause == "memory":
        remedy = f"The compiler ran out of memory: try `--jobs 1`. {remedy}"
    return BuildError(failure.what, where=failure.where or str(log), remedy=remedy)
