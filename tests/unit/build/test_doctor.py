from __future__ import annotations

from pathlib import Path

import pytest

from tqforge.build import doctor, portable
from tqforge.build.doctor import DoctorLevel
from tqforge.core.values import Host, Tool
from tqforge.workspace import Workspace

GIB = 1 << 30
MAC = Host(system="Darwin", release="15.2", machine="arm64", python="arm64", cpu="Apple M2", cores=8, memory=16 * GIB)
ROSETTA = Host(system="Darwin", release="15.2", machine="arm64", python="x86_64", cpu="Apple M2")
NARROW = Host(system="Linux", release="6.1", machine="x86_64", python="x86", cpu="i7")


@pytest.mark.parametrize(
    ("host", "level", "word"),
    [(MAC, DoctorLevel.GOOD, ""), (ROSETTA, DoctorLevel.BAD, "Rosetta"), (NARROW, DoctorLevel.BAD, "x86_64 Python")],
)
def test_architecture(host: Host, level: DoctorLevel, word: str) -> None:
    finding = doctor.architecture(host)
    assert finding.level is level
    assert word in finding.remedy


@pytest.mark.parametrize(
    ("free", "level"),
    [
        (GIB, DoctorLevel.BAD),
        (2 * GIB, DoctorLevel.OPTIONAL),
        (4 * GIB, DoctorLevel.GOOD),
        (90 * GIB, DoctorLevel.GOOD),
    ],
)
def test_disk(free: int, level: DoctorLevel) -> None:
    finding = doctor.disk(free, Path("/workspace"))
    assert finding.level is level
    assert bool(finding.remedy) == (level is not DoctorLevel.GOOD)


@pytest.mark.parametrize(("total", "level"), [(2 * GIB, DoctorLevel.OPTIONAL), (16 * GIB, DoctorLevel.GOOD)])
def test_memory(total: int, level: DoctorLevel) -> None:
    assert doctor.memory(total).level is level


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("2.25.1", DoctorLevel.BAD),
        ("2.31.8", DoctorLevel.BAD),
        ("2.32.0", DoctorLevel.OPTIONAL),
        ("2.37.7", DoctorLevel.OPTIONAL),
        ("2.38.0", DoctorLevel.GOOD),
        ("2.39.5", DoctorLevel.GOOD),
        ("3.0", DoctorLevel.GOOD),
    ],
)
def test_git(version: str, level: DoctorLevel) -> None:
    assert doctor.git(Tool(name="git", path=Path("/usr/bin/git"), version=version)).level is level


def test_the_metal_emulator_is_wished_for_where_there_is_no_metal() -> None:
    clang = Tool(name="clang++-19", path=Path("/usr/bin/clang++-19"), version="19.1")
    assert doctor.metal_emulator(MAC, None).level is DoctorLevel.GOOD
    assert doctor.metal_emulator(NARROW, clang).level is DoctorLevel.GOOD
    assert "clang-19" in doctor.metal_emulator(NARROW, None).remedy
    assert "llvm-19" in doctor.metal_emulator(NARROW, clang, symbolizer=False).remedy


def test_every_finding_that_is_not_good_has_a_remedy() -> None:
    findings = [doctor.architecture(ROSETTA), doctor.disk(0, Path("/")), doctor.memory(1)]
    assert all(finding.remedy for finding in findings)


def test_a_machine_that_refused_a_native_build_is_remembered(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert portable.why_portable(workspace, MAC) == ""
    portable.remember_portable(workspace, MAC, "SIGILL")
    assert portable.why_portable(workspace, MAC) == "SIGILL"
    assert portable.why_portable(workspace, ROSETTA) == "SIGILL"  # the same processor
    assert portable.why_portable(workspace, NARROW) == ""
    portable.forget_portable(workspace, MAC)
    assert portable.why_portable(workspace, MAC) == ""


@pytest.mark.parametrize("text", ["", "[]", "{", '{"x": 1}'])
def test_a_damaged_memory_is_no_memory(tmp_path: Path, text: str) -> None:
    (tmp_path / "machine.json").write_text(text)
    assert portable.why_portable(Workspace(tmp_path), MAC) == ""
