"""Proofs on a toy project that CMake really builds."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from toy import TREE, Toy, git

from tqforge.adapters import proc
from tqforge.base.source import ensure_base
from tqforge.commands.patch import prove
from tqforge.errors import ConfigError
from tqforge.proof import schedule
from tqforge.proof.prove import Selection
from tqforge.proof.record import GuardProof, ProofRecord
from tqforge.proof.results import GuardStatus
from tqforge.series.trailers import Guard

pytestmark = pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler")

CMAKE = """cmake_minimum_required(VERSION 3.20)
project(toy C CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_executable(test-toy test.c)
"""
_GAP = "//\n" * 7
LIBRARY = _GAP.join(
    (
        "static int plus(int a, int b) { return a - b; }\n",
        "static int twice(int a) { return a; }\n",
        "// three\n",
        "// four\n",
        "// five\n",
        "// six\n",
        "static int spare(void) { return 0; }\n",
    )
)
TEST = """#include <string.h>
#include <stdio.h>
#include "toy.h"
int main(int n, char ** v) {
    const char * what = n > 1 ? v[1] : "base";
    if (!strcmp(what, "plus"))  { return plus(2, 2) == 4 ? 0 : (puts("FAIL: plus"), 1); }
    if (!strcmp(what, "twice")) { return twice(4) == 8 ? 0 : 1; }
    if (!strcmp(what, "none"))  { puts("0/0 tests passed"); return 0; }
    if (!strcmp(what, "later")) { return 77; }
    return spare() == 0 ? 0 : 1;
}
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    toy = Toy(tmp_path / "toy", {**TREE, "CMakeLists.txt": CMAKE, "toy.h": LIBRARY, "test.c": TEST})
    monkeypatch.setattr(prove, "load_base", lambda name=None: toy.base)
    monkeypatch.setattr(schedule, "PREFIX_TARGETS", ("test-toy",))
    monkeypatch.setattr(schedule, "PREFIX_TEST", Guard("test-toy", ("base",)))
    add(toy, "plus", "return a - b", "return a + b")
    ensure_base(toy.context().workspace, toy.context().out, toy.base, str(toy.archive))
    return toy


def add(toy: Toy, name: str, old: str, new: str, guard: str = "") -> None:
    text = toy.trailers(name).replace(f"Guard: test-toy {name}", f"Guard: {guard or f'test-toy {name}'}")
    toy.add_patch(name, {"toy.h": (old, new)}, message=text)


def run(toy: Toy, **options: Any) -> tuple[int, ProofRecord]:
    context = toy.context()
    code = prove.run(context, Selection(**options), patches=toy.paths.folder)
    records = sorted((context.workspace.runs / "prove").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    return code, ProofRecord.model_validate_json(records[-1].read_bytes())


def sentences(record: ProofRecord) -> dict[str, str]:
    return {row.patch: row.sentence() for row in record.proofs}


def prefixes(record: ProofRecord) -> list[GuardStatus]:
    return [row.result.status for row in record.prefixes]


def without(proof: GuardProof) -> GuardStatus | None:
    return proof.without_patch.status if proof.without_patch else None


def test_every_outcome_and_a_second_run_from_the_cache(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    add(toy, "twice", "return a; }", "return plus(a, a); }")
    add(toy, "useless", "// three", "// 3", guard="test-toy base")
    add(toy, "empty", "// four", "// 4", guard="test-toy none")
    add(toy, "elsewhere", "// five", "// 5", guard="test-toy later")
    add(toy, "metal", "// six", "// 6", guard="metal-emulator cpy")
    code, record = run(toy)
    assert code == 1
    assert sentences(record) == {
        "plus": "proven",
        "twice": "proven",
        "useless": "passes without the patch",
        "empty": "with the patch: ran no test case",
        "elsewhere": "skipped",
        "metal": "skipped",
    }
    assert prefixes(record) == [GuardStatus.PASSED] * 6
    plus = record.proofs[0]
    assert plus.without_patch
    assert plus.with_patch.tree == record.tree != plus.without_patch.tree
    assert plus.without_patch.detail == "FAIL: plus"
    monkeypatch.setattr(proc, "run", lambda *a, **k: pytest.fail("built again") if "ninja" in str(a) else RUN(*a, **k))
    assert run(toy, patches=["plus"])[0] == 0  # all of it was recorded


RUN = proc.run


def test_a_patch_that_later_ones_need(toy: Toy) -> None:
    add(toy, "again", "return a + b", "return b + a", guard="test-toy plus")
    code, record = run(toy, prefixes=False)
    assert sentences(record)["plus"] == "proven on the series before it; needed by again"
    assert record.proofs[0].needed_by == ("again",)
    assert record.proofs[0].how == "the series before it, with its tests"
    assert code == 1  # the guard of `again` passes without it


def test_a_patch_that_later_ones_call(toy: Toy) -> None:
    """Nothing conflicts without it, but nothing compiles either: its guard fails on the series before it."""
    helper = "static int doubled(int a) { return a + a; }\nstatic int twice(int a) { return doubled(a); }"
    add(toy, "helper", "static int twice(int a) { return a; }", helper, guard="test-toy twice")
    add(toy, "caller", "// six", "static int (*six)(int) = doubled;", guard="test-toy base")
    _, record = run(toy, prefixes=False, patches=["helper"])
    [row] = record.proofs
    assert row.sentence().startswith("proven on the series before it; needed by later patches (")
    assert "doubled" in row.sentence()
    assert without(row) is GuardStatus.FAILED


@pytest.mark.skipif(not shutil.which("ccache"), reason="no ccache")
def test_a_file_that_asks_for_another_is_not_taken_from_ccache(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled once with and once without a header that it includes only if it is there, all else the same."""
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    monkeypatch.delenv("CCACHE_NODIRECT", raising=False)
    ask = '__has_include("extra.h")\n#include "extra.h"\n#else\nstatic int extra(void) { return 1; }\n#endif\n'
    toy.add_patch("ask", {"test.c": ("int main", f"#if {ask}int main"), "toy.h": ("// six", "// 6")})
    path = toy.root / "work/test.c"
    assert "extra" in path.read_text()
    changes = {"test.c": ('"later")) { return 77; }', '"later")) { return extra(); }')}
    toy.add_patch("use", changes, message=toy.trailers("use").replace("test-toy use", "test-toy base"))
    extra = {"extra.h": ("", "static int extra(void) { return 0; }\n")}
    toy.add_patch("extra", extra, message=toy.trailers("extra").replace("test-toy extra", "test-toy later"))
    for _ in range(2):
        _, record = run(toy, prefixes=False, patches=["extra"])
        assert sentences(record) == {"extra": "proven"}
        shutil.rmtree(toy.context().workspace.build("toy", "prove"))
        shutil.rmtree(toy.context().workspace.runs / "prove")


def test_a_prefix_that_does_not_compile(toy: Toy) -> None:
    add(toy, "broken", "static int spare(void) { return 0; }", "static int spare(void) { return nothing; }")
    add(toy, "fixed", "return nothing;", "return 0;", guard="test-toy base")
    code, record = run(toy)
    assert code == 1
    assert prefixes(record) == [GuardStatus.PASSED, GuardStatus.BUILD_FAILED, GuardStatus.PASSED]
    assert "nothing" in record.prefixes[1].result.detail
    assert sentences(record)["fixed"] == "proven"
    assert without(record.proofs[2]) is GuardStatus.BUILD_FAILED


def test_a_part_is_added_to_the_record_and_a_killed_run_is_no_obstacle(toy: Toy) -> None:
    add(toy, "twice", "return a; }", "return plus(a, a); }")
    assert run(toy, patches=["plus"])[0] == 0
    work = toy.context().workspace.build("toy", "prove") / "git/toy"
    lock = work / git(work, "rev-parse", "--git-path", "index.lock")
    lock.write_text("")
    (work / "toy.h").write_text("half written")
    code, record = run(toy, patches=["twice"], prefixes=False)
    assert code == 0
    assert sentences(record) == {"plus": "proven", "twice": "proven"}
    assert [row.patch for row in record.prefixes] == ["plus"]


def test_nothing_to_prove(toy: Toy) -> None:
    (toy.paths.folder / "series").write_text("")
    with pytest.raises(ConfigError, match="no patch to prove"):
        run(toy)
