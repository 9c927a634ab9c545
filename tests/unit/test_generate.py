"""The generator of the README's sections, on runs made up for the test."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from synthetic_report import report, stages
from synthetic_stages import plan_stage, recommendation

from tqforge.core.pair import F16, Q8_0_TQ3_0

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "ci/generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULE = load()  # now, because a unit test may not look for matplotlib's settings in the home folder


@pytest.fixture
def generate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`ci/generate.py` with a README, a recorded run and a picture of its own."""
    module = MODULE
    choices = (recommendation(16 << 30, F16), recommendation(1 << 28, Q8_0_TQ3_0))
    run = report(stages=(*stages(), plan_stage().model_copy(update={"recommendations": choices})))
    (tmp_path / "a.json").write_text(json.dumps(run.to_json()), encoding="utf-8")
    sections = "\n".join(f"<!-- generated: {name} -->\nold\n<!-- end: {name} -->" for name in module.SECTIONS)
    (tmp_path / "README.md").write_text(f"# Title\n{sections}\nthe end\n", encoding="utf-8")
    for name, path in (("REPORTS", "."), ("SHOWN", "a.json"), ("README", "README.md"), ("PICTURE", "images/page.png")):
        monkeypatch.setattr(module, name, tmp_path / path)
    monkeypatch.setattr(shutil, "which", lambda program: None)
    return module


def run(generate: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["generate.py", *arguments])
    return int(generate.main())


def test_check_fails_until_the_readme_is_written_and_changes_nothing(
    generate: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = generate.README.read_text(encoding="utf-8")
    assert run(generate, monkeypatch, "--check") == 1
    assert generate.README.read_text(encoding="utf-8") == before
    assert "run `python ci/generate.py`" in capsys.readouterr().out
    assert run(generate, monkeypatch) == 0
    assert "Chromium is not installed" in capsys.readouterr().out
    assert run(generate, monkeypatch, "--check") == 0
    after = generate.README.read_text(encoding="utf-8")
    assert "old" not in after.splitlines()
    assert after.startswith("# Title\n")
    assert after.endswith("the end\n")


def test_the_excerpt_ends_with_the_command_to_copy(generate: ModuleType) -> None:
    lines = generate.excerpt().splitlines()
    assert lines[:2] == ["```console", "$ tqforge verify --quick"]
    assert lines[-2] == "tqforge run -- llama-server -m synthetic.gguf -c 8192 -ctk q8_0 -ctv tq3_0"
    assert lines.count("[...]") == 1
    assert all(len(line) <= generate.WIDTH for line in lines[:-2])


def test_pairs_by_model_have_their_verdict_and_figures(generate: ModuleType) -> None:
    rows = generate.pairs().splitlines()
    assert rows[0] == "| K/V pair | bits per value | synthetic.gguf |"
    assert rows[2].startswith("| `q8_0/q8_0` | 8.5 | costs quality: KL 0.0055 (")
    assert rows[-1].startswith("| `tq3_0/tq3_0` | 3.5 |")


def test_every_command_and_patch_has_a_line(generate: ModuleType) -> None:
    commands = generate.commands()
    assert all(f"| `tqforge {name}` |" in commands for name in ("build", "verify", "patch apply", "run"))
    series = (ROOT / "patches/upstream/series").read_text(encoding="utf-8").split()
    assert all(f"`{name.removesuffix('.patch')}`" in generate.patches() for name in series)


def test_no_recorded_run_and_a_missing_section_are_errors(generate: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no section 'commands'"):
        generate.generated("# Title\n")
    (tmp_path / "a.json").unlink()
    with pytest.raises(SystemExit, match="no recorded run"):
        generate.pairs()
