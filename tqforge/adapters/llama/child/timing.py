"""Several contexts of one model side by side, so that their rates can be measured in turns."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tqforge.adapters.llama.api.measure import BenchTime
from tqforge.adapters.llama.api.model import ContextSpec
from tqforge.adapters.llama.child.engine import Engine, Held, Tick, Tokens


class Bench:
    """One open context per pair. Every run goes on after a number of tokens that stay."""

    def __init__(self, engine: Engine, specs: Sequence[ContextSpec]) -> None:
        self._engine = engine
        self._held: list[Held | None] = []
        try:
            for spec in specs:
                engine.open(spec)
                self._held.append(engine.exchange())
        except Exception:
            self.close()
            raise

    def run(self, index: int, keep: int, tokens: Tokens, *, single: bool, tick: Tick | None = None) -> BenchTime:
        """Wall and CPU seconds of `tokens` after the first `keep`, in batches or one by one."""
        engine = self._engine
        engine.exchange(self._held[index])
        try:
            engine.keep(keep)
            cpu, wall = time.process_time(), time.perf_counter()
            if single:
                for token in tokens:
                    engine.decode([token], scored=1)
                    engine.logits()  # waits for the device
            else:
                engine.decode(tokens, scored=1, tick=tick)
                engine.logits()
            return BenchTime(seconds=time.perf_counter() - wall, cpu=time.process_time() - cpu)
        finally:
            self._held[index] = engine.exchange()

    def fill(self, index: int, tokens: Tokens, state: Path | None, tick: Tick | None = None) -> bool:
        """Let context `index` hold `tokens`: from the file `state` (then True), else evaluated and kept there."""
        engine = self._engine
        engine.exchange(self._held[index])
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
            self._held[index] = engine.exchange()

    def close(self) -> None:
        for held in self._held:
            if held is not None:
                self._engine.exchange(held)
                self._engine.close_context()
        self._held.clear()


def pin(count: int) -> list[int]:
    """Keep all threads of this process on `count` CPUs; which, or nothing where the system cannot."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    usable = sorted(os.sched_getaffinity(0))
    chosen = sorted(spread_over_cores(usable, {cpu: _core(cpu) for cpu in usable})[:count])
    if len(chosen) < count:
        return []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that has ended meanwhile
            os.sched_setaffinity(int(task.name), chosen)
    return chosen


def spread_over_cores(cpus: Sequence[int], cores: Mapping[int, str]) -> list[int]:
    """The CPUs in an order that takes one of every core before the second of any."""
    met: dict[str, int] = {}
    ranked = []
    for cpu in cpus:
        met[cores[cpu]] = met.get(cores[cpu], 0) + 1
        ranked.append((met[cores[cpu]], cpu))
    return [cpu for _, cpu in sorted(ranked)]


def _core(cpu: int) -> str:
    """What the CPUs of one core have in common; the CPU itself where the system does not say."""
    with suppress(OSError):
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    return str(cpu)


def unpin(cpus: Sequence[int]) -> None:
    """Let all threads run on `cpus` again."""
    if cpus:
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(task.name), cpus)
