"""Requests for traced and timed runs."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters.llama.api.messages import Done, Message, Request
from tqforge.adapters.llama.api.model import ContextSpec
from tqforge.adapters.llama.graphs import Graph


class Traced(Message):
    """A traced run. written: per cache tensor the relative squared error of the rows written here and elsewhere."""

    tokens: tuple[int, ...]
    text: str
    rows: int
    graphs: tuple[Graph, ...]
    cells: int
    written: tuple[tuple[str, float, float], ...]


class Trace(Request[Traced]):
    """Evaluate `batches`, then `steps` single tokens (`forced` or the most likely); all logits go to `save`.

    keep: folder for the cache rows of every evaluation. follow: folder whose rows replace those written here.
    """

    spec: ContextSpec
    batches: tuple[tuple[int, ...], ...]
    steps: int
    save: Path
    forced: tuple[int, ...] | None = None
    keep: Path | None = None
    follow: Path | None = None


class WriteEmulatorReport(Request[Done]):
    """Let the Metal emulator in the child process write its report so far to the file METAL_EMULATOR_REPORT names."""

    backend: Path


class BenchOpened(Message):
    """cpus: the CPUs that the threads stay on; empty where the system pins none."""

    cpus: tuple[int, ...]


class OpenBench(Request[BenchOpened]):
    """Open one context per spec and keep all of them open."""

    contexts: tuple[ContextSpec, ...]
    threads: int


class BenchTime(Message):
    """Wall and CPU seconds."""

    seconds: float
    cpu: float


class RunBench(Request[BenchTime]):
    """Time `tokens` in context `index` after its first `keep` tokens, in batches or one by one."""

    index: int
    keep: int
    tokens: tuple[int, ...]
    single: bool


class BenchFilled(Message):
    """read: the cache came from the snapshot file."""

    read: bool


class FillBench(Request[BenchFilled]):
    """Fill context `index` with `tokens`, from the snapshot file `state` if it exists, and keep one there."""

    index: int
    tokens: tuple[int, ...]
    state: Path | None = None


class CloseBench(Request[Done]):
    """Close the contexts of a benchmark."""
