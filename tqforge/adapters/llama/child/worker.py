"""Run the child process, `python -m tqforge.adapters.llama.child.worker`: it answers requests until its input ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TextIO

from tqforge.adapters.llama import protocol
from tqforge.adapters.llama.api import cache, measure, model
from tqforge.adapters.llama.api.messages import Done, Message, Request
from tqforge.adapters.llama.child import codec, extra_libraries, symbols, timing
from tqforge.adapters.llama.child.engine import Engine, Tick
from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.passage import Passage, Reader
from tqforge.adapters.llama.child.trace import buffers, callback
from tqforge.adapters.llama.child.trace.tensors import CacheProbe
from tqforge.errors import LoadError

Handler = Callable[[Any, Tick], Message]


class Worker:
    """One method per request; `answer` finds it by the type of the request."""

    def __init__(self) -> None:
        self._native: Native | None = None
        self._engine: Engine | None = None
        self._loaded: model.LoadModel | None = None
        self._simulated: Engine | None = None
        self._bench: timing.Bench | None = None
        self.handlers: dict[type[Request[Any]], Handler] = {
            model.Load: self._load,
            model.LoadModel: self._load_model,
            model.Tokenize: self._tokenize,
            model.Open: self._open,
            model.Extend: self._extend,
            model.Generate: self._generate,
            model.ListDevices: self._list_devices,
            model.CheckOrigin: self._check_origin,
            cache.ReadCache: self._read_cache,
            cache.Score: self._score,
            cache.Reserve: self._reserve,
            cache.ListEncoders: self._list_encoders,
            cache.Encode: self._encode,
            cache.Decode: self._decode,
            measure.Trace: self._trace,
            measure.WriteEmulatorReport: self._write_emulator_report,
            measure.OpenBench: self._open_bench,
            measure.RunBench: self._run_bench,
            measure.FillBench: self._fill_bench,
            measure.CloseBench: self._close_bench,
        }

    def answer(self, request: Request[Any], tick: Tick) -> Message:
        """Return the reply to a request."""
        return self.handlers[type(request)](request, tick)

    @property
    def native(self) -> Native:
        if self._native is None:
            raise LoadError("No library is loaded.")
        return self._native

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            raise LoadError("No model is loaded.")
        return self._engine

    @property
    def bench(self) -> timing.Bench:
        if self._bench is None:
            raise LoadError("No contexts are open.")
        return self._bench

    def _load(self, request: model.Load, _tick: Tick) -> model.Loaded:
        native = self._native = Native(request.library, request.bindings)
        if request.backend:
            extra_libraries.load(native, request.backend, request.device)
        return model.Loaded(
            library=str(native.path),
            bindings=native.version,
            declared=native.declared,
            fields=native.fields,
            system=native.api.llama_print_system_info().decode("utf-8", "replace").strip(),
            gpu=bool(native.api.llama_supports_gpu_offload()),
            types=tuple(native.types.values()),
        )

    def _load_model(self, request: model.LoadModel, _tick: Tick) -> model.ModelReport:
        self._loaded, self._simulated = request, None
        self._engine = Engine(self.native, request.path, request.gpu_layers)
        return self.engine.report()

    def _tokenize(self, request: model.Tokenize, _tick: Tick) -> model.TokenLists:
        texts, special = request.texts, request.special
        found = (self.engine.tokenize(text, add_special=False, parse_special=special) for text in texts)
        return model.TokenLists(tokens=tuple(map(tuple, found)))

    def _open(self, request: model.Open, _tick: Tick) -> model.Opened:
        self.engine.open(request.spec)
        return model.Opened(cells=self.engine.cells(), rotation=self.native.log.rotation())

    def _extend(self, request: model.Extend, tick: Tick) -> Done:
        self.engine.keep(request.keep)
        self.engine.decode(list(request.tokens), scored=1, tick=tick)
        return Done()

    def _generate(self, request: model.Generate, _tick: Tick) -> model.Generated:
        tokens, ended = self.engine.generate(request.limit)
        return model.Generated(tokens=tuple(tokens), text=self.engine.detokenize(tokens), ended=ended)

    def _list_devices(self, _request: model.ListDevices, _tick: Tick) -> model.DeviceList:
        return model.DeviceList(devices=tuple(self.native.devices()))

    def _check_origin(self, request: model.CheckOrigin, _tick: Tick) -> Done:
        symbols.check_origin(request.folder)
        return Done()

    def _read_cache(self, request: cache.ReadCache, _tick: Tick) -> cache.CacheReport:
        probe = CacheProbe(self.native)
        self.engine.open(request.spec, callback=probe.callback)
        try:
            self.engine.decode(list(request.tokens), scored=1)
            return cache.CacheReport(
                tensors=tuple(tensor.report for tensor in probe.tensors()),
                saved_blocks=probe.save_values(len(request.tokens), request.save) if request.save else 0,
                buffers=probe.buffers(),
                cells=self.engine.cells(),
                rotation=self.native.log.rotation(),
                peak_rss=buffers.peak_rss(),
            )
        finally:
            self.engine.close_context()

    def _score(self, request: cache.Score, tick: Tick) -> cache.Scored:
        passage = Passage(
            tokens=list(request.tokens), windows=request.windows, starts=request.starts, limit=request.limit
        )
        made = None if request.made is None else [list(tokens) for tokens in request.made]
        self.engine.open(request.spec)
        try:
            found = Reader(self.engine, passage, tick).read(request.reference, request.save, made)
        finally:
            self.engine.close_context()
        return cache.Scored(
            nll=tuple(one.nll for one in found.scores),
            kl=tuple(one.kl for one in found.scores),
            same_top=tuple(one.same_top for one in found.scores),
            made=tuple(tuple(tokens) for tokens in found.made),
            equal=tuple(found.equal),
            rotation=self.native.log.rotation(),
        )

    def _reserve(self, request: cache.Reserve, _tick: Tick) -> cache.Reserved:
        engine = self._simulation() if request.simulated else self.engine
        engine.open(request.spec)
        try:
            seen = buffers.read(self.native.log.lines)
            sizes = {"weights": seen.weights, "compute": seen.compute}
            return cache.Reserved(cells=engine.cells(), caches=tuple(seen.caches), **sizes)
        finally:
            engine.close_context()

    def _simulation(self) -> Engine:
        """Return the loaded model again, without weights."""
        if self._simulated is None:
            if self._loaded is None:
                raise LoadError("No model is loaded.")
            loaded = self._loaded
            self._simulated = Engine(self.native, loaded.path, loaded.gpu_layers, simulated=True)
        return self._simulated

    def _list_encoders(self, request: cache.ListEncoders, _tick: Tick) -> cache.EncoderList:
        return cache.EncoderList(encoders=tuple(codec.encoders(self.native, request.type)))

    def _encode(self, request: cache.Encode, _tick: Tick) -> Done:
        codec.encode(self.native, request.type, request.encoder, request.values, request.out)
        return Done()

    def _decode(self, request: cache.Decode, _tick: Tick) -> Done:
        codec.decode(self.native, request.type, request.packed, request.out)
        return Done()

    def _trace(self, request: measure.Trace, tick: Tick) -> measure.Traced:
        return callback.trace(self.native, self.engine, request, tick)

    def _write_emulator_report(self, request: measure.WriteEmulatorReport, _tick: Tick) -> Done:
        extra_libraries.write_emulator_report(request.backend)
        return Done()

    def _open_bench(self, request: measure.OpenBench, tick: Tick) -> measure.BenchOpened:
        self._close_bench(measure.CloseBench(), tick)
        self._bench = timing.Bench(self.engine, request.contexts, request.threads)
        return measure.BenchOpened(cpus=self._bench.cpus)

    def _run_bench(self, request: measure.RunBench, tick: Tick) -> measure.BenchTime:
        return self.bench.run(request.index, request.keep, list(request.tokens), single=request.single, tick=tick)

    def _fill_bench(self, request: measure.FillBench, tick: Tick) -> measure.BenchFilled:
        read = self.bench.fill(request.index, list(request.tokens), request.state, tick)
        return measure.BenchFilled(read=read)

    def _close_bench(self, _request: measure.CloseBench, _tick: Tick) -> Done:
        if self._bench is not None:
            self._bench.close()
            self._bench = None
        return Done()


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer requests until they end. An exception becomes the reply to its request."""
    worker = Worker()

    def send(line: str) -> None:
        replies.write(line + "\n")
        replies.flush()

    def report(number: int, done: int) -> None:
        send(protocol.progress_line(number, done))

    for line in requests:
        asked = protocol.RequestLine.model_validate_json(line)
        try:
            reply = worker.answer(protocol.read_request(asked), partial(report, asked.id))
            send(protocol.reply_line(asked.id, reply))
        except Exception as error:
            send(protocol.error_line(asked.id, error))


def main() -> None:
    """Serve standard input. Replies get the real standard output; native code that prints gets standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: end with the parent
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, replies)


if __name__ == "__main__":
    main()
