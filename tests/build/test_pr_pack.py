"""The CPU part of the pull-request pack by itself: on the bare base it compiles and passes upstream's tests."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from narrow import context, source

from tqforge.adapters import proc, toolchain
from tqforge.adapters.cmake import BuildTree
from tqforge.adapters.git import Repository
from tqforge.base.pins import load_base
from tqforge.base.source import ensure_base
from tqforge.build import builder, cmake_plan
from tqforge.build.cmake_plan import Options, Version
from tqforge.commands import pr
from tqforge.errors import DownloadError
from tqforge.series.apply import AM

PROGRAMS = ("test-quantize-fns", "test-tq3_0", "test-backend-ops")
RUNS = (
    ("test-quantize-fns",),
    ("test-tq3_0",),
    ("test-backend-ops", "test", "-b", "CPU", "-p", "tq3_0"),
    ("test-backend-ops", "test", "-b", "CPU", "-o", "FLASH_ATTN_EXT", "-p", "type_K=tq3_0"),
)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def packs(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The pack of the shipped series, made twice."""
    ctx = context(cache / "pr-pack")
    folders = [tmp_path_factory.mktemp("pack") / name for name in ("one", "two")]
    try:
        with ctx.workspace.lock("the tests"):
            ensure_base(ctx.workspace, ctx.out, load_base(), source())
    except DownloadError as error:
        pytest.skip(f"deferred: {error.what}")
    for folder in folders:
        assert pr.run(ctx, out=folder) == 0
    return folders


def test_the_pack_made_twice_is_the_same(packs: list[Path]) -> None:
    one, two = (files(folder) for folder in packs)
    assert one == two
    assert {"FACTS.md", "COMMANDS.md", "CHECKLIST.md", "DESCRIPTION.md", "SHA256SUMS"} < one.keys()


@pytest.fixture(scope="module")
def part(compiler: None, cache: Path, packs: list[Path]) -> BuildTree:
    """The bare base with the CPU part on it, compiled; laid out like a workspace, for the sake of ccache."""
    ctx = context(cache / "pr-pack")
    base = load_base()
    theirs = Repository(ctx.workspace.checkout(base.name))
    folder = ctx.workspace.build(base.name, "part")
    work = Repository(folder / "git" / base.name)
    if work.path.exists():
        shutil.rmtree(work.path)
    theirs.git("worktree", "prune", "--expire=now")
    with ctx.workspace.lock("the tests"):
        _, commit = ensure_base(ctx.workspace, ctx.out, base, source())
        theirs.git("worktree", "add", "--quiet", "--detach", "--force", work.path, commit)
    work.git(*AM, "--no-3way", "--", *sorted((packs[0] / "parts/cpu").iterdir()))
    assert f"Part cpu: tree {work.tree('HEAD')}" in (packs[0] / "FACTS.md").read_text()
    tools = toolchain.tools()
    options = Options(native=False, metal=False, ccache=tools.ccache.path if tools.ccache else None)
    plan = cmake_plan.make(toolchain.host(), options, Version(tree="0" * 12))
    tree = BuildTree(
        source=work.path,
        folder=folder / "builds" / base.name / "cpu",
        tools=tools,
        environment={
            **builder.environment(ctx.workspace),
            "CCACHE_NODIRECT": "1",
        },  # test-tq3_0 asks with __has_include
    )
    tree.configure([*plan.arguments, *plan.launchers], fresh=False)
    tree.build(["llama", "llama-bench", *PROGRAMS], plan.jobs, lambda line: None)
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("argv", RUNS, ids=" ".join)
def test_the_cpu_part_passes_upstreams_tests(part: BuildTree, argv: tuple[str, ...]) -> None:
    done = proc.run([part.folder / "bin" / argv[0], *argv[1:]], check=False, timeout=1200)
    text = done.stdout + done.stderr
    assert done.ok, text[-3000:]
    if argv[0] == "test-backend-ops":
        counts = re.findall(r"(\d+)/(\d+) tests passed", text)
        assert counts, "no case was run"
        assert all(passed == total != "0" for passed, total in counts), counts
