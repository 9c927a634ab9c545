"""Keep several contexts of one model open and time them in turns."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tqforge.adapters.llama.api.measure import BenchTime
from tqforge.adapters.llama.api.model import ContextSpec
from tqforge.adapters.llama.child.engine import Engine, SavedContext, Tick, Tokens


class Bench:
    """One open context per pair; a run starts after the tokens that it keeps.

    cpus: the CPUs that all threads are pinned to until `close`; empty if the system cannot pin.
    """

    def __init__(self, engine: Engine, specs: Sequence[ContextSpec], threads: int) -> None:
        self._engine = engine
        self._contexts: list[SavedContext | None] = []
        self._usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        order = spread_over_cores(self._usable, {cpu: _core(cpu) for cpu in self._usable})
        self.cpus = tuple(sorted(order[:threads])) if len(order) >= threads else ()
        _allow(self.cpus)
        try:
            for spec in specs:
                engine.open(spec)
                self._contexts.append(engine.exchange())
        except Exception:
            self.close()
            raise

    def run(self, index: int, keep: int, tokens: Tokens, *, single: bool, tick: Tick | None = None) -> BenchTime:
        """Return the wall and CPU seconds of `tokens` after the first `keep`, in batches or one by one."""
        engine = self._engine
        engine.exchange(self._contexts[index])
        try:
            engine.keep(keep)
            cpu, wall = time.process_time(), time.perf_counter()
            if single:
                for token in tokens:
                    engine.decode([token], scored=1)
                    engine.logits()  # wait for the device
            else:
                engine.decode(tokens, scored=1, tick=tick)
                engine.logits()
            return BenchTime(seconds=time.perf_counter() - wall, cpu=time.process_time() - cpu)
        finally:
            self._contexts[index] = engine.exchange()

    def fill(self, index: int, tokens: Tokens, state: Path | None, tick: Tick | None = None) -> bool:
        """Fill context `index` with `tokens` and return whether they came from the snapshot file `state`.

        Otherwise evaluate those that the context lacks and write the snapshot.
        """
        engine = self._engine
        engine.exchange(self._contexts[index])
        try:
            if state and state.exists() and engine.restore(state, tokens):
                return True
            done = engine.common(tokens)
            engine.keep(done)
            engine.decode(tokens[done:], scored=1, tick=tick)
            engine.logits()
            if state:
                engine.save(state, tokens)
            return False
        finally:
            self._contexts[index] = engine.exchange()

    def close(self) -> None:
        """Free the contexts and allow all threads on all CPUs again."""
        for context in self._contexts:
            if context is not None:
                self._engine.exchange(context)
                self._engine.close_context()
        self._contexts.clear()
        _allow(self._usable)


def _allow(cpus: Sequence[int]) -> None:
    """Let all threads of this process run on these CPUs; an empty list changes nothing."""
    for task in Path("/proc/self/task").iterdir() if cpus else ():
        with suppress(OSError):  # the thread has ended
            os.sched_setaffinity(int(task.name), cpus)


def spread_over_cores(cpus: Sequence[int], cores: Mapping[int, str]) -> list[int]:
    """Order CPUs so that the first of every core comes before the second of any."""
    met: dict[str, int] = {}
    ranked = []
    for cpu in cpus:
        met[cores[cpu]] = met.get(cores[cpu], 0) + 1
        ranked.append((met[cores[cpu]], cpu))
    return [cpu for _, cpu in sorted(ranked)]


def _core(cpu: int) -> str:
    """Return a key that is the same for all CPUs of a core; the CPU itself if the topology is unknown."""
    with suppress(OSError):
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    return str(cpu)
