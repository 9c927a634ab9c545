"""Libraries that must not pass the load check, each with the reason in plain words."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tqforge.adapters.console import Output
from tqforge.build import smoke_test
from tqforge.errors import CrashError, LoadError, TqforgeError

BINDINGS = """
@ctypes_function("llama_backend_init", [], None)
def llama_backend_init(): ...
@ctypes_function("llama_newer_function", [], None)
def llama_newer_function(): ...
"""


def _never() -> Path:
    raise AssertionError("the model was asked for before the library was loaded")


@pytest.fixture
def request_(tmp_path: Path) -> smoke_test.Request:
    package = tmp_path / "bindings" / "llama_cpp"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "llama_cpp.py").write_text(BINDINGS)
    (tmp_path / "bin").mkdir()
    return smoke_test.Request(
        library=tmp_path / "bin", bindings=tmp_path / "bindings", log=tmp_path / "load.log", metal=False, threads=1
    )


def _library(request: smoke_test.Request, source: str) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("deferred: no C compiler on PATH")
    (request.library / "x.c").write_text(source)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "x.c", "-o", "libllama.so"], cwd=request.library, check=True, timeout=60
    )


def _fails(request: smoke_test.Request) -> TqforgeError:
    with pytest.raises(TqforgeError) as caught:
        smoke_test.run(request, _never, Output())
    return caught.value


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGILL", "SIGABRT"])
def test_a_library_that_dies_is_named_with_signal_and_stage(request_: smoke_test.Request, name: str) -> None:
    _library(request_, f"#include <signal.h>\n__attribute__((constructor)) static void f(void) {{ raise({name}); }}\n")
    error = _fails(request_)
    assert isinstance(error, CrashError)
    assert f"{name} in stage load" in error.what
    assert smoke_test.is_processor_fault(error) == (name != "SIGABRT")


def test_missing_symbols_are_listed(request_: smoke_test.Request) -> None:
    _library(request_, "void llama_backend_init(void) {}\n")
    error = _fails(request_)
    assert isinstance(error, LoadError)
    assert "llama_newer_function" in error.what


def test_a_library_for_another_machine(request_: smoke_test.Request) -> None:
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack("<HHI", 3, 243, 1)
    (request_.library / "libllama.so").write_bytes(header + bytes(100))
    error = _fails(request_)
    assert isinstance(error, LoadError)
    assert "243" in error.remedy


def test_no_library(request_: smoke_test.Request) -> None:
    assert isinstance(_fails(request_), LoadError)


def test_no_bindings(request_: smoke_test.Request) -> None:
    _library(request_, "void llama_backend_init(void) {}\n")
    shutil.rmtree(request_.bindings)
    assert "bindings" in _fails(request_).what


def test_files_in_the_users_folder_are_not_imported(
    request_: smoke_test.Request, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A `numpy.py` beside a model is the user's own business; it must neither run nor break the child process."""
    _library(request_, "void llama_backend_init(void) {}\n")
    folder = tmp_path / "users-folder"
    folder.mkdir()
    for name in ("numpy", "gguf", "pydantic", "queue", "tqforge"):
        (folder / f"{name}.py").write_text("open('ran', 'w').close()\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", os.environ.get("PYTHONPATH", "")]))
    assert isinstance(_fails(request_), LoadError)
    assert not (folder / "ran").exists()
