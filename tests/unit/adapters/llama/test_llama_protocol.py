from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from typing import Any

import pytest

from tqforge.adapters.llama import protocol
from tqforge.adapters.llama.api import cache, measure, model
from tqforge.adapters.llama.api.messages import Done, Message, Request, reply_type
from tqforge.adapters.llama.api.model import ContextSpec
from tqforge.adapters.llama.child import symbols, worker
from tqforge.errors import CacheTypeError, CrashError, LoadError, TqforgeError


def through(error: BaseException) -> TqforgeError:
    """What the parent raises when the child raised `error`."""
    line = protocol.ReplyLine.model_validate_json(protocol.error_line(1, error))
    assert line.error is not None
    return protocol.to_error(line.error)


def test_an_error_crosses_the_pipe_with_its_class() -> None:
    got = through(CacheTypeError("no such type", where="lib", remedy="build"))
    assert type(got) is CacheTypeError
    assert (got.what, got.where, got.remedy) == ("no such type", "lib", "build")


def test_a_crash_keeps_its_signal() -> None:
    got = through(CrashError("died", signal="SIGSEGV"))
    assert isinstance(got, CrashError)
    assert got.signal == "SIGSEGV"


def test_an_unknown_exception_is_still_reported() -> None:
    got = through(ZeroDivisionError("x"))
    assert type(got) is TqforgeError
    assert "ZeroDivisionError: x" in got.what


SPEC = ContextSpec(k="q8_0", v="tq3_0", n_ctx=256)
EXAMPLES: list[tuple[Request[Any], Message]] = [
    (model.Tokenize(texts=("a", "\n\u00e9"), special=True), model.TokenLists(tokens=((1, 2), ()))),
    (model.Open(spec=SPEC), model.Opened(cells=256, rotation={"k": True})),
    (model.Extend(keep=3, tokens=(4, 5)), Done()),
    (model.Generate(limit=4), model.Generated(tokens=(7,), text="x", ended=True)),
    (model.ListDevices(), model.DeviceList(devices=(model.DeviceInfo(name="CPU", gpu=False, free=1, total=2),))),
    (
        cache.Score(spec=SPEC, tokens=(1, 2), windows=((1, 1),), save=Path("ref.npy")),
        cache.Scored(nll=(0.5,), kl=(None,), same_top=(None,), made=((3,),), equal=(1,), rotation={}),
    ),
    (
        cache.Reserve(spec=SPEC, simulated=True),
        cache.Reserved(
            cells=1, weights=2, compute=3, caches=(cache.CachePart(sliding=True, cells=1, layers=2, bytes=3),)
        ),
    ),
    (
        measure.Trace(spec=SPEC, batches=((1,), (2, 3)), steps=2, save=Path("t.npy"), forced=(1, 2)),
        measure.Traced(tokens=(1, 2), text="", rows=4, graphs=(), cells=256, written=(("cache_k_l0", 0.1, 0.2),)),
    ),
    (measure.RunBench(index=1, keep=2, tokens=(3,), single=True), measure.BenchTime(seconds=0.5, cpu=1.0)),
]


@pytest.mark.parametrize(("request_", "reply"), EXAMPLES, ids=[type(one).__name__ for one, _ in EXAMPLES])
def test_requests_and_replies_survive_the_pipe(request_: Request[Any], reply: Message) -> None:
    line = protocol.RequestLine.model_validate_json(protocol.request_line(5, request_))
    assert protocol.read_request(line) == request_
    answer = protocol.ReplyLine.model_validate_json(protocol.reply_line(5, reply))
    assert answer.ok is not None
    assert protocol.read_reply(request_, answer.ok) == reply


def test_every_request_has_one_handler_and_a_reply_type() -> None:
    handlers = worker.Worker().handlers
    assert set(handlers) == set(protocol.REQUESTS.values())
    assert len(handlers) == 20
    assert all(issubclass(reply_type(kind), Message) for kind in handlers)


@pytest.mark.parametrize(
    ("op", "args"),
    [("Nonsense", {}), ("Tokenize", {}), ("Tokenize", {"texts": ["a"], "more": 1}), ("Generate", {"limit": "many"})],
)
def test_wrong_requests_are_refused(op: str, args: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"unknown operation|validation error"):
        protocol.read_request(protocol.RequestLine(id=1, op=op, args=args))


@pytest.mark.parametrize("content", [{}, {"tokens": [[1]], "text": "x"}, {"tokens": "1"}])
def test_wrong_replies_are_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        protocol.read_reply(model.Tokenize(texts=("a",)), content)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_refused(value: float) -> None:
    reply = measure.BenchTime.model_construct(seconds=value, cpu=1.0)
    with pytest.raises(ValueError, match="finite"):
        protocol.reply_line(1, reply)


def test_the_worker_answers_every_request_even_before_a_library_is_loaded() -> None:
    replies = io.StringIO()
    lines = [
        protocol.request_line(1, model.Tokenize(texts=("a",))),
        protocol.RequestLine(id=2, op="Nonsense", args={}).model_dump_json(),
        protocol.request_line(3, measure.CloseBench()),
    ]
    worker.serve(io.StringIO("\n".join(lines)), replies)
    first, second, third = map(protocol.ReplyLine.model_validate_json, replies.getvalue().splitlines())
    assert first.error is not None
    assert (first.id, first.error.name) == (1, "LoadError")
    assert second.error is not None
    assert "Nonsense" in second.error.what
    assert third.ok == {}


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
    with pytest.raises(LoadError, match="not there"):
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
