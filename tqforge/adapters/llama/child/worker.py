"""The child: `python -m tqforge.adapters.llama.worker`. Reads requests, answers them, and may die of native code."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tqforge.adapters.llama import protocol
from tqforge.adapters.llama.child import codec, extra_libraries, symbols, timing
from tqforge.adapters.llama.child.engine import ContextSpec, Engine, Tick
from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.passage import Passage, Reader
from tqforge.adapters.llama.child.trace import buffers, callback
from tqforge.adapters.llama.child.trace.tensors import CacheProbe
from tqforge.errors import LoadError

Args = dict[str, Any]


class Worker:
    """One operation per method; each returns the `ok` of its reply."""

    def __init__(self) -> None:
        self._native: Native | None = None
        self._engine: Engine | None = None
        self._simulated: Engine | None = None
        self._bench: timing.Bench | None = None
        self._cpus: list[int] = []

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

    def load(self, args: Args, _tick: Tick) -> Args:
        """Load library and bindings, and a backend of its own file if one is named."""
        native = self._native = Native(Path(args["library"]), Path(args["bindings"]))
        if backend := args.get("backend"):
            extra_libraries.load(native, Path(backend), args["device"])
        return {
            "library": str(native.path),
            "bindings": native.version,
            "declared": native.declared,
            "fields": native.fields,
            "system": native.api.llama_print_system_info().decode("utf-8", "replace").strip(),
            "gpu": bool(native.api.llama_supports_gpu_offload()),
            "types": [asdict(info) for info in native.types.values()],
        }

    def model(self, args: Args, _tick: Tick) -> Args:
        self._path, self._gpu_layers = Path(args["path"]), int(args["gpu_layers"])
        self._engine = Engine(self.native, self._path, self._gpu_layers)
        return self.engine.facts()

    def tokenize(self, args: Args, _tick: Tick) -> Args:
        texts, special = args["texts"], {"add_special": False, "parse_special": bool(args.get("special"))}
        return {"tokens": [self.engine.tokenize(text, **special) for text in texts]}

    def open(self, args: Args, _tick: Tick) -> Args:
        self.engine.open(ContextSpec(**args))
        return {"cells": self.engine.cells(), "rotation": self.native.log.rotation()}

    def close(self, _args: Args, _tick: Tick) -> Args:
        self.engine.close_context()
        return {}

    def extend(self, args: Args, tick: Tick) -> Args:
        """Keep the first `keep` tokens of the context and append `tokens`."""
        self.engine.keep(int(args["keep"]))
        self.engine.decode(args["tokens"], scored=1, tick=tick)
        return {}

    def generate(self, args: Args, _tick: Tick) -> Args:
        tokens, ended = self.engine.generate(int(args["limit"]))
        return {"tokens": tokens, "text": self.engine.detokenize(tokens), "ended": ended}

    def cache(self, args: Args, _tick: Tick) -> Args:
        """Open a context, write `tokens` into its cache, describe the cache tensors; `save` keeps what they hold."""
        probe = CacheProbe(self.native)
        tokens = args.pop("tokens")
        save = args.pop("save", None)
        self.engine.open(ContextSpec(**args), callback=probe.callback)
        try:
            self.engine.decode(tokens, scored=1)
            found = [asdict(tensor) for tensor in probe.tensors()]
            blocks = probe.save_values(len(tokens), Path(save)) if save else 0
            return {
                "tensors": found,
                "buffers": probe.buffers(),
                "cells": self.engine.cells(),
                "rotation": self.native.log.rotation(),
                "saved_blocks": blocks,
                "peak_rss": peak_rss(),
            }
        finally:
            self.engine.close_context()

    def score(self, args: Args, tick: Tick) -> Args:
        """Open a context and read `tokens`, with `windows` scored and continued after each of `starts`.

        Without `reference` this run is the reference: its logits are kept in the file `save`.
        """
        words = {name: args.pop(name) for name in ("tokens", "windows", "starts", "limit") if name in args}
        paths = {name: Path(args.pop(name)) if args.get(name) else None for name in ("reference", "save")}
        made = args.pop("made", None)
        args = {name: value for name, value in args.items() if name not in paths}
        self.engine.open(ContextSpec(**args))
        try:
            found = Reader(self.engine, Passage(**words), tick).read(**paths, made=made)
        finally:
            self.engine.close_context()
        columns = {name: [getattr(one, name) for one in found.scores] for name in ("nll", "kl", "same_top")}
        return {**columns, "made": found.made, "equal": found.equal, "rotation": self.native.log.rotation()}

    def reserve(self, args: Args, _tick: Tick) -> Args:
        """Open a context, say what was allocated for it, and close it. `simulated`: what would be allocated."""
        engine = self.engine
        if args.pop("simulated", False):
            engine = self._simulated = self._simulated or Engine(
                self.native, self._path, self._gpu_layers, simulated=True
            )
        engine.open(ContextSpec(**args))
        try:
            return {"cells": engine.cells(), **asdict(buffers.read(self.native.log.lines))}
        finally:
            engine.close_context()

    def devices(self, _args: Args, _tick: Tick) -> Args:
        return {"devices": self.native.devices()}

    def trace(self, args: Args, tick: Tick) -> Args:
        """Open a context, run `batches`, then single tokens; keep all logits in `save`, say where the ops were put."""
        places = {name: Path(args.pop(name)) for name in ("save", "keep", "follow") if name in args}
        run = callback.Run(args.pop("batches"), int(args.pop("steps")), args.pop("forced", None), **places)
        return callback.trace(self.native, self.engine, ContextSpec(**args), run, tick)

    def emulator_report(self, args: Args, _tick: Tick) -> Args:
        """What the Metal emulator in this process dispatched and found so far."""
        return extra_libraries.emulator_report(Path(args["backend"]))

    def bench_open(self, args: Args, _tick: Tick) -> Args:
        """One context per entry of `contexts`, all kept open; the process stays on `threads` CPUs where it can."""
        self.bench_close({}, _tick)
        self._cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        pinned = timing.pin(int(args["threads"]))
        self._bench = timing.Bench(self.engine, [ContextSpec(**spec) for spec in args["contexts"]])
        return {"cpus": pinned}

    def bench_run(self, args: Args, tick: Tick) -> Args:
        """Evaluate `tokens` in context `index` after its first `keep` tokens; how long that took."""
        if self._bench is None:
            raise LoadError("No contexts are open.")
        index, keep = int(args["index"]), int(args["keep"])
        return self._bench.run(index, keep, args["tokens"], single=bool(args["single"]), tick=tick)

    def bench_fill(self, args: Args, tick: Tick) -> Args:
        """Let context `index` hold `tokens`; the file `state` keeps what that took."""
        if self._bench is None:
            raise LoadError("No contexts are open.")
        state = Path(args["state"]) if args["state"] else None
        return {"read": self._bench.fill(int(args["index"]), args["tokens"], state, tick)}

    def only_from(self, args: Args, _tick: Tick) -> Args:
        """Raises LoadError if a library of llama.cpp was loaded from elsewhere than `folder`."""
        folder = Path(args["folder"])
        foreign = symbols.loaded_elsewhere(folder, Path("/proc/self/maps"))
        if foreign:
            raise LoadError(
                f"With the library of {folder} came {foreign[0].name} of another build.",
                where=str(foreign[0]),
                remedy="Put all libraries of that build into one folder.",
            )
        return {}

    def bench_close(self, _args: Args, _tick: Tick) -> Args:
        if self._bench is not None:
            self._bench.close()
            self._bench = None
            timing.unpin(self._cpus)
        return {}

    def encoders(self, args: Args, _tick: Tick) -> Args:
        return {"encoders": codec.encoders(self.native, args["type"])}

    def encode(self, args: Args, _tick: Tick) -> Args:
        codec.encode(self.native, args["type"], args["encoder"], Path(args["values"]), Path(args["out"]))
        return {}

    def decode(self, args: Args, _tick: Tick) -> Args:
        codec.decode(self.native, args["type"], Path(args["packed"]), Path(args["out"]))
        return {}

    def crash(self, args: Args, _tick: Tick) -> Args:
        """Die of a signal, as a fault in native code would: the parent's report of it is tested with this."""
        os.kill(os.getpid(), int(args.get("signal", signal.SIGSEGV)))
        return {}


def peak_rss() -> int:
    """Largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer until the requests end."""
    worker = Worker()

    def send(message: protocol.Message) -> None:
        replies.write(protocol.encode(message) + "\n")
        replies.flush()

    def report(number: int, done: int) -> None:
        send({"id": number, "done": done})

    for line in requests:
        request = protocol.decode(line)
        number = request["id"]
        try:
            action: Callable[[Args, Tick], Args] = getattr(worker, request["op"])
            send({"id": number, "ok": action(request["args"], partial(report, number))})
        except Exception as error:  # the parent decides what it means
            send({"id": number, "error": protocol.error_message(error)})


def main() -> None:
    """Keep the real standard output for replies: native code that prints must not break the conversation."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # and if the parent dies, so does the child
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, replies)


if __name__ == "__main__":
    main()
