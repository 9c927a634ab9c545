"""Compare two runs of a model over the same tokens, on a device and on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.graphs import ATTENTION, SET_ROWS, Graph
from tqforge.core import divergence
from tqforge.core.pair import Pair
from tqforge.report.schema.base import Interval
from tqforge.report.schema.rows import DeviceRow, WriteError
from tqforge.verify.stats import block_bootstrap

Logits = NDArray[np.float32]
_CPU = "CPU"
_BLOCK = 4


@dataclass(frozen=True)
class TraceResult:
    """One pair on one backend: logits per token, the tokens chosen after the prompt, and the graphs."""

    logits: Logits
    tokens: Sequence[int]
    text: str = ""
    graphs: Sequence[Graph] = ()
    dispatches: Mapping[str, int] | None = None
    faults: str = ""
    seconds: float = 0.0
    #: Per cache tensor, over the squared values: squared error of this run's rows, and of those put in their place.
    written: Sequence[tuple[str, float, float]] = ()


@dataclass(frozen=True)
class DeviceVsCpu:
    """The same tokens on the device and on the CPU; after the prompt the device follows the CPU's greedy choice.

    `single` is the CPU again, with the same tokens one by one. `same` is the CPU again, with every row of its cache
    replaced by the device's as soon as it is written.
    """

    pair: Pair
    prompt: int  # tokens that are the same for all pairs
    device: TraceResult
    cpu: TraceResult
    single: TraceResult | None = None
    same: TraceResult | None = None


def kl(reference: Logits, other: Logits) -> NDArray[np.float64]:
    """Return KL(reference || other) at every position, in nats."""
    scores = [divergence.compare(row, 0, ref).kl for row, ref in zip(other, reference, strict=True)]
    return np.array(scores, dtype=np.float64)


def mean(values: NDArray[np.float64]) -> Interval:
    return block_bootstrap(values, block=_BLOCK)


def row(both: DeviceVsCpu, control: DeviceVsCpu | None, device: str) -> DeviceRow:
    """Return the figures of one pair. `control` is f16/f16, or None for itself."""
    apart = kl(both.cpu.logits, both.device.logits)
    same = both.cpu.logits.argmax(axis=1) == both.device.logits.argmax(axis=1)
    parted, gap_cpu, gap_device = parting(both)
    ran = both.device.dispatches
    errors = both.same.written if both.same else ()
    return DeviceRow(
        pair=both.pair,
        tokens=len(apart),
        kl=mean(apart),
        kl_max=float(apart.max()),
        top1=float(same.mean()),
        kl_cpu=mean(kl(both.cpu.logits, both.single.logits)) if both.single else None,
        kl_same=mean(kl(both.same.logits, both.device.logits)) if both.same else None,
        error_cpu=float(np.mean([cpu for _, cpu, _ in errors])) if errors else None,
        error_device=float(np.mean([device for _, _, device in errors])) if errors else None,
        kl_f16_device=_from_f16(both.device, control.device, both.prompt) if control else None,
        kl_f16_cpu=_from_f16(both.cpu, control.cpu, both.prompt) if control else None,
        parted=parted,
        gap_cpu=gap_cpu,
        gap_device=gap_device,
        text=both.cpu.text,
        splits=max((graph.splits for graph in both.device.graphs), default=0),
        strays=strays(both.device.graphs, device),
        cpu_strays=_cpu_strays(both),
        write_errors=_write_errors(errors),
        dispatches=None if ran is None else sum(ran.values()),
        attention=_count(ran, "flash_attn_ext"),
        writes=_count(ran, "set_rows"),
        seconds=round(both.device.seconds, 1),
        note=both.device.faults,
    )


def _from_f16(run: TraceResult, control: TraceResult, prompt: int) -> Interval:
    return mean(kl(control.logits[:prompt], run.logits[:prompt]))


def _count(ran: Mapping[str, int] | None, word: str) -> int | None:
    return None if ran is None else sum(count for kernel, count in ran.items() if word in kernel)


def parting(both: DeviceVsCpu) -> tuple[int | None, float | None, float | None]:
    """Return the first greedy token where the device differs, and by how many logits on either side."""
    for step, chosen in enumerate(both.cpu.tokens):
        here = both.prompt - 1 + step
        other = int(both.device.logits[here].argmax())
        if other != chosen:
            cpu, device = both.cpu.logits[here], both.device.logits[here]
            return step, float(cpu[chosen] - cpu[other]), float(device[other] - device[chosen])
    return None, None, None


def strays(graphs: Sequence[Graph], device: str) -> tuple[str, ...]:
    """List cache writes and attention that are not on the device: `FLASH_ATTN on CPU (30, first node_21)`."""
    worst: dict[tuple[str, str], tuple[int, str]] = {}
    for graph in graphs:
        for node in graph.nodes:
            if node.op in (SET_ROWS, ATTENTION) and node.backend != device:
                key = (node.op, node.backend)
                worst[key] = max(worst.get(key, (0, "")), (node.count, node.first))
    return tuple(f"{op} on {where} ({count}, first {first})" for (op, where), (count, first) in sorted(worst.items()))


def _write_errors(errors: Sequence[tuple[str, float, float]]) -> tuple[WriteError, ...]:
    """Return the errors of the K rows and of the V rows."""
    found = []
    sides: tuple[Literal["k"], Literal["v"]] = ("k", "v")
    for side in sides:
        some = [(cpu, device) for name, cpu, device in errors if name.startswith(f"cache_{side}")]
        if some:
            cpu, device = np.mean(some, axis=0)
            found.append(WriteError(side=side, cpu=float(cpu), device=float(device)))
    return tuple(found)


def _cpu_strays(both: DeviceVsCpu) -> tuple[str, ...]:
    """Return ops of the reference that ran elsewhere: it would agree with the device, right or wrong."""
    runs = [run for run in (both.cpu, both.single, both.same) if run]
    return tuple(sorted({stray for run in runs for stray in strays(run.graphs, _CPU)}))


def placed(graphs: Sequence[Graph], device: str) -> dict[str, int]:
    """Count cache writes and attentions on the device, in the graph that has the fewest."""
    counts = [
        {
            op: sum(node.count for node in graph.nodes if (node.op, node.backend) == (op, device))
            for op in (SET_ROWS, ATTENTION)
        }
        for graph in graphs
    ]
    return {op: min((count[op] for count in counts), default=0) for op in (SET_ROWS, ATTENTION)}
