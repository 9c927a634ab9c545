"""The checks that bindings and library match."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tqforge.adapters.llama.child import symbols
from tqforge.errors import LoadError

SOURCE = """
@ctypes_function("llama_one", [], None)
def one(): ...

@ctypes_function(
    "llama_two", [], None, enabled=False
)
def two(): ...

@other("llama_three")
def three(): ...
"""


def test_declared_symbols_are_read_without_importing(tmp_path: Path) -> None:
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "llama_cpp.py").write_text(SOURCE)
    assert symbols.declared_symbols(tmp_path) == ["llama_one"]
    with pytest.raises(LoadError, match="cannot be read"):
        symbols.declared_symbols(tmp_path / "elsewhere")


class _Library:
    llama_one = 1


def test_missing_symbols_are_named() -> None:
    library: Any = _Library()
    assert symbols.check_symbols(library, ["llama_one"], Path("lib")) == 1
    with pytest.raises(LoadError, match="llama_new") as caught:
        symbols.check_symbols(library, ["llama_one", "llama_new"], Path("lib"))
    assert "tqforge build" in caught.value.remedy
    with pytest.raises(LoadError, match="none are declared"):
        symbols.check_symbols(library, [], Path("lib"))


class _Params:
    _fields_ = (("n_ctx", int), ("type_k", int), ("new_field", int))
    n_ctx, type_k, new_field = 512, 1, 7


def test_a_moved_field_is_found() -> None:
    assert symbols.check_context_defaults(_Params()) == 2
    moved = _Params()
    moved.type_k = -1
    with pytest.raises(LoadError, match="type_k = -1, not 1"):
        symbols.check_context_defaults(moved)


def test_the_architecture_is_read_from_the_file(tmp_path: Path) -> None:
    elf, macho, text = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    elf.write_bytes(b"\x7fELF" + bytes(14) + struct.pack("<H", 183))
    macho.write_bytes(b"\xcf\xfa\xed\xfe" + struct.pack("<i", 0x01000007) + bytes(12))
    text.write_bytes(b"hello")
    assert [symbols.binary_arch(path) for path in (elf, macho, text)] == ["arm64", "x86_64", ""]


def test_a_folder_without_a_library(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no libllama"):
        symbols.library_file(tmp_path)
