"""Every outcome of a drift, on toy upstreams in real git."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from toy import TREE, Toy, git, repository

from tqforge.base.source import ensure_base
from tqforge.commands.patch import drift
from tqforge.errors import CheckoutError, ToolchainError, UsageError
from tqforge.series.drift.outcomes import DriftOutcome
from tqforge.series.patchfile import net_lines

QUANTS, CACHE = TREE["src/quants.c"], TREE["src/cache.cpp"]
Probe = Callable[..., list[dict[str, object]]]


@pytest.fixture
def probe(toy: Toy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Probe:
    """Run the command on one target; the results of the JSON report."""
    monkeypatch.setattr(drift, "load_base", lambda name=None: toy.base)

    def run(target: object, expected: int | None = None) -> list[dict[str, object]]:
        context = toy.context()
        ensure_base(context.workspace, context.out, toy.base, str(toy.archive))
        code = drift.run(context, [str(target)], patches=toy.paths.folder, out=toy.root / "report")
        capsys.readouterr()
        report = json.loads((toy.root / "report/drift.json").read_text())
        results: list[dict[str, object]] = report["snapshots"][0]["results"]
        assert code == any(item["breaking"] for item in results)
        return results

    return run


def outcomes(results: list[dict[str, object]]) -> list[object]:
    return [item["outcome"] for item in results]


def one_patch(toy: Toy) -> None:
    toy.add_patch("one", {"src/quants.c": ("int line_30;\n", "int line_30;\nint added;\n")})


def test_clean_and_moved(toy: Toy, probe: Probe) -> None:
    one_patch(toy)
    toy.add_patch("two", {"src/cache.cpp": ("cache line 20\n", "cache line twenty\n")})
    found = probe(toy.variant("v2", {"src/quants.c": "int new_first_line;\n" + QUANTS}))
    assert outcomes(found) == ["moved", "clean"]
    assert found[0]["detail"] == "by +1 lines"


def test_merged(toy: Toy, probe: Probe) -> None:
    one_patch(toy)
    found = probe(toy.variant("v2", {"src/quants.c": QUANTS.replace("int line_28;", "long line_28;")}))
    assert outcomes(found) == ["merged"]


def test_a_file_renamed_upstream(toy: Toy, probe: Probe) -> None:
    one_patch(toy)
    found = probe(toy.variant("v2", {"src/quants.c": None, "src/codec.c": QUANTS}))
    assert outcomes(found) == ["merged"]
    assert found[0]["detail"] == "follows a rename to src/codec.c"


def test_already_upstream_whole_in_part_and_squashed(toy: Toy, probe: Probe) -> None:
    one_patch(toy)
    whole = QUANTS.replace("int line_30;\n", "int line_30;\nint added;\n")
    assert outcomes(probe(toy.variant("v2", {"src/quants.c": whole}))) == ["already upstream"]
    more = whole.replace("int line_10;", "int ten;").replace("int line_33;", "int thirty_three;")
    assert outcomes(probe(toy.variant("v3", {"src/quants.c": more}))) == ["already upstream"]


def test_partly_upstream(toy: Toy, probe: Probe) -> None:
    toy.add_patch(
        "both",
        {
            "src/quants.c": ("int line_30;\n", "int line_30;\nint added;\n"),
            "src/cache.cpp": ("cache line 20\n", "cache line twenty\n"),
        },
    )
    half = QUANTS.replace("int line_30;\n", "int line_30;\nint added;\n")
    found = probe(toy.variant("v2", {"src/quants.c": half}))
    assert outcomes(found) == ["merged"]
    assert found[0]["detail"] == "upstream already contains 1 of its lines"


def test_conflict_names_file_and_hunk(toy: Toy, probe: Probe) -> None:
    toy.add_patch("two-hunks", {"src/quants.c": ("int line_5;\n", "int five;\n")})
    toy.add_patch("one", {"src/quants.c": ("int line_30;\n", "int thirty;\n")})
    found = probe(toy.variant("v2", {"src/quants.c": QUANTS.replace("int line_30;", "long line_30;")}))
    assert outcomes(found) == ["clean", "conflict"]
    assert (found[1]["file"], found[1]["hunk"], found[1]["hunks"]) == ("src/quants.c", 1, 1)


def test_target_deleted(toy: Toy, probe: Probe) -> None:
    one_patch(toy)
    found = probe(toy.variant("v2", {"src/quants.c": None}))
    assert outcomes(found) == ["target deleted"]
    assert found[0]["file"] == "src/quants.c"


def test_broken_and_crlf_patch_files(toy: Toy, probe: Probe) -> None:
    one_patch(toy)
    path = toy.add_patch("two", {"src/cache.cpp": ("cache line 20\n", "cache line twenty\n")})
    toy.add_patch("three", {"src/cache.cpp": ("cache line 5\n", "cache line five\n")})
    good = path.read_bytes()
    for data, reason in ((good.replace(b"\n", b"\r\n"), "CRLF"), (good[:-30], "cut off"), (b"", "not in mail format")):
        path.write_bytes(data)
        found = probe(toy.variant(f"v{len(data)}", {}))
        assert outcomes(found) == ["clean", "broken", "clean"]
        assert reason in str(found[1]["detail"])


def test_nothing_is_skipped_and_dependence_is_said(toy: Toy, probe: Probe) -> None:
    toy.three()
    toy.add_patch("four", {"src/cache.cpp": ("cache line 5\n", "cache line five\n")})
    found = probe(toy.variant("v2", {"src/quants.c": QUANTS.replace("int line_10;\n", "long line_ten;\n")}))
    assert outcomes(found) == ["conflict", "clean", "conflict", "clean"]
    assert [item["needs"] for item in found] == [[], [], ["one"], []]


BODY = "".join(f"    step_{number}();\n" for number in range(6))


def function(name: str, body: str = BODY) -> str:
    return "".join(f"// {name} {number}\n" for number in range(5)) + f"void {name}() {{\n{body}}}\n"


def test_a_text_that_fits_in_the_wrong_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upstream put a function with the same body where ours was: zero fuzz fits there, and would drop its line."""
    toy = Toy(tmp_path / "lost", {**TREE, "src/same.c": function("ours")})
    toy.add_patch("drop", {"src/same.c": ("    step_3();\n", "")})
    monkeypatch.setattr(drift, "load_base", lambda name=None: toy.base)
    context = toy.context()
    ensure_base(context.workspace, context.out, toy.base, str(toy.archive))
    target = toy.variant("v2", {"src/same.c": function("theirs") + function("ours")})
    assert drift.run(context, [str(target)], patches=toy.paths.folder, out=toy.root / "report") == 1
    result = json.loads((toy.root / "report/drift.json").read_text())["snapshots"][0]["results"][0]
    assert result["outcome"] == DriftOutcome.LOST_LINES
    assert result["file"] == "src/same.c"
    assert "applies in the wrong place" in result["detail"]


def test_an_auto_merge_that_changes_upstream_lines_without_a_mark(toy: Toy, probe: Probe) -> None:
    """A union merge never conflicts; here it brings back what upstream deleted."""
    one_patch(toy)
    shorter = QUANTS.replace("".join(f"int line_{number};\n" for number in range(27, 35)), "")
    found = probe(toy.variant("v2", {"src/quants.c": shorter, ".gitattributes": "*.c merge=union\n"}))
    assert outcomes(found) == ["lost upstream lines"]
    assert "restore or duplicate" in str(found[0]["detail"])


def test_an_auto_merge_that_drops_upstream_lines_without_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upstream put a function with our old body before ours and changed ours: text and history both take the line
    from the wrong one, agree, and say nothing."""
    toy = Toy(tmp_path / "lost", {**TREE, "src/same.c": function("ours")})
    toy.add_patch("drop", {"src/same.c": ("    step_3();\n", "")})
    monkeypatch.setattr(drift, "load_base", lambda name=None: toy.base)
    context = toy.context()
    ensure_base(context.workspace, context.out, toy.base, str(toy.archive))
    changed = function("ours", BODY.replace("step_2", "fresh").replace("step_4", "other"))
    target = toy.variant("v2", {"src/same.c": f"void theirs() {{\n{BODY}}}\n{changed}"})
    assert drift.run(context, [str(target)], patches=toy.paths.folder, out=toy.root / "report") == 1
    result = json.loads((toy.root / "report/drift.json").read_text())["snapshots"][0]["results"][0]
    assert result["outcome"] == DriftOutcome.LOST_LINES
    assert "it would remove 'step_3();' from 'void theirs() {', but was made for 'void ours() {'" in result["detail"]


def test_a_line_that_moved_with_its_function_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy(tmp_path / "moved", {**TREE, "src/same.c": function("ours")})
    toy.add_patch("drop", {"src/same.c": ("    step_3();\n", "")})
    monkeypatch.setattr(drift, "load_base", lambda name=None: toy.base)
    context = toy.context()
    ensure_base(context.workspace, context.out, toy.base, str(toy.archive))
    for number, text in enumerate((f"int first;\n{function('ours')}", function("ours").replace("ours", "renamed"))):
        target = toy.variant(f"v{number}", {"src/same.c": text})
        assert drift.run(context, [str(target)], patches=toy.paths.folder, out=toy.root / "report") == 0


def test_a_git_that_cannot_merge_is_named(toy: Toy, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    one_patch(toy)
    shims, real = toy.root / "bin", shutil.which("git")
    shims.mkdir()
    (shims / "git").write_text(f'#!/bin/sh\n[ "$1" = merge-tree ] && exit 129\nexec {real} "$@"\n')
    (shims / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ToolchainError, match="too old") as caught:
        probe(toy.variant("v2", {}))
    assert "2.38" in caught.value.remedy


def test_lines_are_compared_without_moves_and_blanks() -> None:
    removed, added = net_lines(["--- a/x", "+++ b/x", "-a", "-b", "-", "+a", "+c\r", "+", " d"])
    assert (dict(removed), dict(added)) == ({"b": 1}, {"c": 1})


def test_a_link_a_submodule_and_a_mode(toy: Toy, probe: Probe) -> None:
    one_patch(toy)
    toy.add_patch("tool", {"tools/run.sh": ("echo hello\n", "echo bye\n")})
    other = toy.root / "other"
    commit, _ = repository(
        other, {**toy.tree, "src/quants.c": "-> cache.cpp", "tools/run.sh": "#!/bin/sh\necho hello\n"}
    )
    git(other, "update-index", "--add", "--cacheinfo", f"160000,{commit},vendor/sub")
    git(other, "commit", "-q", "-m", "with a submodule")
    found = probe(f"{other.as_uri()}#{git(other, 'rev-parse', 'HEAD')}")
    assert outcomes(found) == ["conflict", "clean"]


def test_shallow_and_partial_clones(toy: Toy, probe: Probe) -> None:
    one_patch(toy)
    git(toy.upstream, "config", "uploadpack.allowFilter", "true")
    shallow, partial = toy.root / "shallow", toy.root / "partial"
    git(toy.root, "clone", "-q", "--depth=1", toy.upstream.as_uri(), str(shallow))
    git(toy.root, "clone", "-q", "--filter=blob:none", "--no-checkout", toy.upstream.as_uri(), str(partial))
    assert outcomes(probe(shallow)) == ["clean"]
    with pytest.raises(CheckoutError, match="does not hold all files"):
        probe(partial)
    with pytest.raises(UsageError, match="not a pinned archive version"):
        probe("9.9.9")


def test_several_snapshots_the_first_that_breaks_and_the_same_report_twice(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "load_base", lambda name=None: toy.base)
    toy.three()
    context = toy.context()
    repo, _ = ensure_base(context.workspace, context.out, toy.base, str(toy.archive))
    good = toy.variant("good", {"src/cache.cpp": "first\n" + CACHE})
    bad = toy.variant("bad", {"src/cache.cpp": CACHE.replace("line 20", "line of twenty")})
    worse = toy.variant("worse", {"src/cache.cpp": None, "src/quants.c": None})
    before = {path: path.read_bytes() for folder in (good, bad, worse) for path in folder.rglob("*") if path.is_file()}
    targets = [str(path) for path in (good, bad, worse)]
    texts = []
    for name in ("a", "b"):
        assert drift.run(context, targets, patches=toy.paths.folder, out=toy.root / name) == 1
        texts.append([(toy.root / name / f"drift.{kind}").read_text() for kind in ("md", "json")])
    assert texts[0] == texts[1]
    assert json.loads(texts[0][1])["first_breaking"] == {"one": "worse", "two": "bad", "three": "worse"}
    assert "| `two` | moved | **conflict** | **target deleted** | bad |" in texts[0][0]
    assert before == {
        path: path.read_bytes() for folder in (good, bad, worse) for path in folder.rglob("*") if path.is_file()
    }
    assert repo.line("worktree", "list").count("\n") == 0
