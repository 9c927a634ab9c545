"""`tqforge patch lint` and `tqforge patch path` on a toy upstream in real git."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from toy import Toy, run

from tqforge.base import snapshots, source
from tqforge.commands.patch import lint as command
from tqforge.commands.patch import path as path_command
from tqforge.errors import CheckoutError, DownloadError
from tqforge.series import lint
from tqforge.series.lint import subject
from tqforge.series.lint.subject import Subject


@pytest.fixture(autouse=True)
def _base(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (command, path_command):
        monkeypatch.setattr(module, "load_base", lambda name=None: toy.base)
    toy.add_patch("ggml-one", {"src/quants.c": ("int line_10;\n", "int line_10;\nint added;\n")})


def load(toy: Toy) -> Subject:
    context = toy.context()
    return subject.load(context.workspace, context.out, toy.base, toy.paths)


def reasons(toy: Toy) -> set[str]:
    return {item.reason for item in lint.check(load(toy))[1]}


def test_the_rules_see_the_base_and_the_patched_tree(toy: Toy) -> None:
    ctx = toy.context()
    source.ensure_base(ctx.workspace, ctx.out, toy.base, str(toy.archive))
    found = load(toy)
    assert found.before
    assert found.after
    assert found.before.read("src/quants.c") == toy.tree["src/quants.c"]
    assert "int added;" in (found.after.read("src/quants.c") or "")
    assert found.after.names("include") == ["include/types.h"]
    assert [patch.name for patch, _ in found.parsed()] == ["ggml-one.patch"]
    assert found.snapshots == {}


def test_imported_snapshots_are_there_under_their_label(toy: Toy) -> None:
    context = toy.context()
    repository, _ = source.ensure_base(context.workspace, context.out, toy.base, str(toy.archive))
    newer = toy.variant("newer", {"src/quants.c": "int newer;\n"})
    label = snapshots.import_snapshot(context.workspace, context.out, repository, toy.base, str(newer)).label
    assert load(toy).snapshots[label].read("src/quants.c") == "int newer;\n"


def test_the_checkout_is_not_touched(toy: Toy) -> None:
    ready = run(toy)
    (ready.path / "src/quants.c").write_text("mine\n")
    load(toy)
    assert (ready.path / "src/quants.c").read_text() == "mine\n"


def test_without_the_base_the_rules_about_trees_are_skipped(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object) -> None:
        raise DownloadError("no network")

    monkeypatch.setattr(source, "ensure_base", offline)
    found = load(toy)
    assert (found.before, found.after) == (None, None)
    assert reasons(toy) == {"the base is not available: no network"}


def test_a_series_that_does_not_apply_is_said(toy: Toy) -> None:
    ctx = toy.context()
    source.ensure_base(ctx.workspace, ctx.out, toy.base, str(toy.archive))
    path = toy.paths.folder / "ggml-one.patch"
    path.write_text(path.read_text().replace(" int line_9;", " int line_nine;"))
    assert reasons(toy) == {
        "the series does not apply: ggml-one.patch does not apply: conflict in src/quants.c, hunk 1 of 1 (line 8)."
    }


def lint_json(toy: Toy, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    context = toy.context()
    context.out.json_mode = True
    capsys.readouterr()
    code = command.run(context, patches=toy.paths.folder)
    return code, json.loads(capsys.readouterr().out)


def test_findings_have_rule_and_remedy_and_exit_1(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    run(toy, write_lock=True)
    code, found = lint_json(toy, capsys)
    assert code == 1
    assert (found["patches"], len(found["rules"])) == (1, len(lint.RULES))
    assert {row["rule"] for row in found["findings"]} == {"scope", "block-layout"}
    assert all(row["remedy"] and row["message"] for row in found["findings"])
    assert [row["rule"] for row in found["skipped"]] == ["metal-kernels"]
    assert command.run(toy.context(), patches=toy.paths.folder) == 1
    text = capsys.readouterr().out
    assert "next: " in text
    assert f"1 patches, {len(lint.RULES) - 1} of {len(lint.RULES)} rules run, 2 findings" in " ".join(text.split())


def test_no_finding_is_exit_0(toy: Toy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(toy, write_lock=True)
    few = tuple(rule for rule in lint.RULES if rule[0] not in ("scope", "block-layout"))
    monkeypatch.setattr(lint, "RULES", few)
    code, found = lint_json(toy, capsys)
    assert (code, found["findings"], found["rules"]) == (0, [], [name for name, _ in few])


def test_path_prints_the_checkout_and_nothing_else(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CheckoutError, match="no checkout") as caught:
        path_command.run(toy.context())
    assert "patch apply" in caught.value.remedy
    ready = run(toy)
    capsys.readouterr()
    assert path_command.run(toy.context()) == 0
    found = capsys.readouterr()
    assert found.out == f"{ready.path}\n"
    assert Path(found.out.strip()).is_dir()
    context = toy.context()
    context.out.json_mode = True
    path_command.run(context)
    assert json.loads(capsys.readouterr().out) == {"checkout": str(ready.path)}
