"""The pull-request pack on a toy upstream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic_report import report
from toy import TREE, Toy, git

from tqforge.base.source import ensure_base
from tqforge.commands import pr
from tqforge.errors import ConfigError, PatchError
from tqforge.proof.record import GuardProof, ProofRecord, ProvenBase
from tqforge.proof.results import GuardResult, GuardStatus
from tqforge.series import lint

GUIDE = "# Contributors\n\nCreate separate PRs for each feature\nor fix. Nothing else.\n"
TEMPLATE = "## Overview\n\n<!-- Describe -->\n\n- AI usage disclosure:\n"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    tree = {
        **TREE,
        "CONTRIBUTING.md": GUIDE,
        ".github/pull_request_template.md": TEMPLATE,
        "ggml/src/ggml-metal/k.metal": "kernel a;\nkernel b;\nkernel c;\nkernel d;\n",
        "tests/test-backend-ops.cpp": "case a;\ncase b;\ncase c;\n",
    }
    toy = Toy(tmp_path / "toy", tree)
    monkeypatch.setattr(pr, "load_base", lambda name=None: toy.base)
    toy.add_patch("ggml-one", {"src/quants.c": ("int line_10;\n", "int line_10;\nint added;\n")})
    toy.add_patch("metal-one", {"ggml/src/ggml-metal/k.metal": ("kernel b;\n", "kernel b;\nkernel new;\n")})
    toy.add_patch("tests-one", {"tests/test-backend-ops.cpp": ("case b;\n", "case b;\ncase new;\n")})
    ensure_base(toy.context().workspace, toy.context().out, toy.base, str(toy.archive))
    return toy


def make(toy: Toy, name: str = "pack") -> dict[str, str]:
    assert pr.run(toy.context(), patches=toy.paths.folder, out=toy.root / name) == 0
    folder = toy.root / name
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def record(tree: str, detail: str = "") -> ProofRecord:
    """A record with one proven guard on a tree."""
    passed = GuardResult(tree=tree, test="test-toy", status=GuardStatus.PASSED, detail=detail)
    failed = passed.model_copy(update={"tree": "e" * 40, "status": GuardStatus.FAILED})
    proof = GuardProof(patch="ggml-one", guard="test-toy", with_patch=passed, without_patch=failed, how="left out")
    base = ProvenBase(name="toy", tree="0" * 40)
    return ProofRecord(base=base, series_sha256="d" * 64, tree=tree, proofs=(proof,))


def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "check", lambda subject: ([], []))


def test_lint_findings_refuse_the_pack(toy: Toy) -> None:
    with pytest.raises(PatchError, match="lint has"):
        make(toy)
    assert not (toy.root / "pack").exists()


def test_parts_apply_one_after_the_other_and_give_the_tree(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clean(monkeypatch)
    files = make(toy)
    cpu = [name for name in files if name.startswith("parts/cpu/")]
    assert cpu == ["parts/cpu/0001-ggml-one.patch", "parts/cpu/0002-tests-one.patch"]
    assert "Patch-Name" not in files[cpu[0]]
    assert "Guard:" not in files[cpu[0]]
    assert "Subject: [PATCH] toy : ggml-one\n\nBecause.\n" in files[cpu[0]]
    bare = toy.root / "bare"
    git(toy.root, "clone", "-q", str(toy.upstream), str(bare))
    git(bare, "am", "-q", *(str(toy.root / "pack" / name) for name in cpu))
    assert git(bare, "rev-parse", "HEAD^{tree}") in files["FACTS.md"]
    git(bare, "am", "-q", str(toy.root / "pack/parts/metal/0001-metal-one.patch"))
    assert git(bare, "rev-parse", "HEAD^{tree}") == git(toy.root / "work", "rev-parse", "HEAD^{tree}")


def test_twice_the_same_bytes_and_nothing_invented(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clean(monkeypatch)
    files = make(toy)
    assert files == make(toy, "again")
    assert files["DESCRIPTION.md"] == TEMPLATE
    assert "No recorded run of an exported tree." in files["FACTS.md"]
    assert "- [x] The first part is CPU only" in files["CHECKLIST.md"]
    assert "- [x] The new type has cases" in files["CHECKLIST.md"]
    assert "- [ ] KL divergence against f16" in files["CHECKLIST.md"]


def test_changed_rules_are_said(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clean(monkeypatch)
    text = make(toy)["CHECKLIST.md"]
    assert "**CONTRIBUTING.md changed since the checklist was made" in text
    assert "**AGENTS.md is not in this base" in text
    assert 'CONTRIBUTING.md: "Create separate PRs for each feature or fix"' in text
    assert 'no longer found in this base: "provide KL divergence' in text


def test_a_run_of_another_tree_is_stale(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clean(monkeypatch)
    tree = git(toy.root / "work", "rev-parse", "HEAD^{tree}")
    folder = toy.context().workspace.runs
    (folder / "prove").mkdir(parents=True)
    (folder / "prove/new.json").write_text(record(tree).to_json())
    (folder / "prove/old.json").write_text(record("f" * 40).to_json())
    (folder / "prove/unknown.json").write_text('{"schema": "tqforge.prove/1"}')
    (folder / "broken").mkdir()
    (folder / "broken/report.json").write_text("{}")
    files = make(toy)
    assert "| ggml-one | `test-toy` | passed | failed | proven |" in files["FACTS.md"]
    assert "- [x] Each fix has a test" in files["CHECKLIST.md"]
    assert "prove old: tree ffffffffffff is not exported here" in files["CHECKLIST.md"]
    assert "prove unknown: not readable" in files["CHECKLIST.md"]
    assert "broken: not readable" in files["CHECKLIST.md"]
    assert "evidence/new.prove.json" in files
    assert "evidence/old.prove.json" not in files


def test_no_path_of_this_machine_is_in_the_pack(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clean(monkeypatch)
    tree = git(toy.root / "work", "rev-parse", "HEAD^{tree}")
    runs = toy.context().workspace.runs
    model = "/data/models/m.gguf"
    measured = report()
    keys = measured.build.model_copy(update={"tree": tree, "compiler": f"C {toy.root}/bin/cc 12"})
    measured = measured.model_copy(update={"build": keys, "command": ("tqforge", "verify", "--model", model)})
    (runs / "one").mkdir(parents=True)
    (runs / "one/report.json").write_text(measured.model_dump_json())
    (runs / "prove").mkdir()
    (runs / "prove/new.json").write_text(record(tree, f"no file {toy.root}/x.c, {model}").to_json())
    files = make(toy)
    assert "\ntqforge verify --model m.gguf    # one\n" in files["COMMANDS.md"]
    assert "no file x.c, m.gguf" in files["evidence/new.prove.json"]
    assert json.loads(files["evidence/one.report.json"])["build"]["compiler"] == "C cc 12"
    for name, text in files.items():
        assert str(toy.root) not in text.replace(toy.base.repository, ""), name  # the toy's upstream lies there
        assert "/data/" not in text, name


def test_a_cpu_patch_that_needs_a_metal_patch(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clean(monkeypatch)
    toy.add_patch(
        "ggml-two",
        {
            "ggml/src/ggml-metal/k.metal": ("kernel new;\n", "kernel newer;\n"),
            "src/quants.c": ("int line_50;\n", "int fifty;\n"),
        },
    )
    with pytest.raises(PatchError, match=r"ggml-two\.patch cannot go into the part 'cpu'"):
        make(toy)


def test_a_folder_with_something_else_is_left_alone(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clean(monkeypatch)
    (toy.root / "pack").mkdir()
    (toy.root / "pack/mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="not a pack"):
        make(toy)
    assert (toy.root / "pack/mine.txt").exists()
