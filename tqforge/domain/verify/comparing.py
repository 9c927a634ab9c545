"""Two runs of one model over the same tokens, on a device and on the CPU: what their logits say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama import divergence
from tqforge.adapters.llama.placement import ATTENTION, SET_ROWS
from tqforge.domain.report.schema import DeviceRow, Interval, Status
from tqforge.domain.verify.stats import block_bootstrap

Logits = NDArray[np.float32]
#: KL(CPU || device) of a pair may be this many times what f16/f16 differs by, and this much more. Above it, nothing is
#: shown while the CPU differs from itself as much (the same tokens one by one), and beyond that the pair falls short.
FACTOR, SLACK = 2.0, 1e-3
CONTROL = "f16/f16"
_BLOCK = 4


@dataclass(frozen=True)
class Run:
    """One pair on one backend: a row of logits per token, the tokens chosen after the prompt, where the ops stood."""

    logits: Logits
    tokens: Sequence[int]
    text: str = ""
    graphs: Sequence[Mapping[str, Any]] = ()
    dispatches: Mapping[str, int] | None = None
    faults: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Both:
    """The same tokens on the device and on the CPU; after the prompt the device follows the CPU's greedy choice."""

    pair: str
    prompt: int  # tokens that are the same for all pairs
    device: Run
    cpu: Run
    single: Run | None = None  # the CPU again, the same tokens one by one


def kl(reference: Logits, other: Logits) -> NDArray[np.float64]:
    """KL(reference || other) at every position, in nats."""
    scores = [divergence.compare(row, 0, ref).kl for row, ref in zip(other, reference, strict=True)]
    return np.array(scores, dtype=np.float64)


def mean(values: NDArray[np.float64]) -> Interval:
    return block_bootstrap(values, block=_BLOCK)


def row(both: Both, control: Both | None, device: str) -> DeviceRow:
    """The figures of one pair. `control` is f16/f16, and None for itself."""
    apart = kl(both.cpu.logits, both.device.logits)
    same = both.cpu.logits.argmax(axis=1) == both.device.logits.argmax(axis=1)
    parted, gap_cpu, gap_device = parting(both)
    ran = both.device.dispatches
    return DeviceRow(
        pair=both.pair,
        tokens=len(apart),
        kl=mean(apart),
        kl_max=float(apart.max()),
        top1=float(same.mean()),
        kl_cpu=mean(kl(both.cpu.logits, both.single.logits)) if both.single else None,
        kl_f16_device=_from_f16(both.device, control.device, both.prompt) if control else None,
        kl_f16_cpu=_from_f16(both.cpu, control.cpu, both.prompt) if control else None,
        parted=parted,
        gap_cpu=gap_cpu,
        gap_device=gap_device,
        text=both.cpu.text,
        splits=max((graph["splits"] for graph in both.device.graphs), default=0),
        strays=strays(both.device.graphs, device),
        dispatches=None if ran is None else sum(ran.values()),
        attention=_count(ran, "flash_attn_ext"),
        writes=_count(ran, "set_rows"),
        seconds=round(both.device.seconds, 1),
        note=both.device.faults,
    )


def _from_f16(run: Run, control: Run, prompt: int) -> Interval:
    return mean(kl(control.logits[:prompt], run.logits[:prompt]))


def _count(ran: Mapping[str, int] | None, word: str) -> int | None:
    return None if ran is None else sum(count for kernel, count in ran.items() if word in kernel)


def parting(both: Both) -> tuple[int | None, float | None, float | None]:
    """The first greedy token that the device would have chosen differently, and what each lacks of the other there."""
    for step, chosen in enumerate(both.cpu.tokens):
        here = both.prompt - 1 + step
        other = int(both.device.logits[here].argmax())
        if other != chosen:
            cpu, device = both.cpu.logits[here], both.device.logits[here]
            return step, float(cpu[chosen] - cpu[other]), float(device[other] - device[chosen])
    return None, None, None


def strays(graphs: Sequence[Mapping[str, Any]], device: str) -> tuple[str, ...]:
    """Cache writes and attention elsewhere than on the device, as `FLASH_ATTN on CPU (30, first node_21)`."""
    worst: dict[tuple[str, str], tuple[int, str]] = {}
    for graph in graphs:
        for node in graph["nodes"]:
            if node["op"] in (SET_ROWS, ATTENTION) and node["backend"] != device:
                key = (node["op"], node["backend"])
                worst[key] = max(worst.get(key, (0, "")), (node["count"], node["first"]))
    return tuple(f"{op} on {where} ({count}, first {first})" for (op, where), (count, first) in sorted(worst.items()))


def placed(graphs: Sequence[Mapping[str, Any]], device: str) -> dict[str, int]:
    """How many cache writes and attentions stand on the device, in the graph that has the fewest."""
    counts = [
        {
            op: sum(node["count"] for node in graph["nodes"] if (node["op"], node["backend"]) == (op, device))
            for op in (SET_ROWS, ATTENTION)
        }
        for graph in graphs
    ]
    return {op: min((count[op] for count in counts), default=0) for op in (SET_ROWS, ATTENTION)}


def bar(floor: float) -> float:
    return FACTOR * floor + SLACK


def with_bars(rows: Sequence[DeviceRow]) -> tuple[DeviceRow, ...]:
    """Each pair with what it may come to; f16/f16, the first, has none."""
    return tuple(row if row.pair == CONTROL else row.model_copy(update={"bar": bar(rows[0].kl.value)}) for row in rows)


def undecided(rows: Sequence[DeviceRow], floor: float) -> str:
    """The pairs above the bar that differ no more than the CPU does from itself, in words; empty without one."""
    over = [row for row in rows if row.pair != CONTROL and bar(floor) < row.kl.value <= _limit(row, floor)]
    if not over:
        return ""
    shown = ", ".join(f"{row.pair} {row.kl.value:.2g} ({row.kl_cpu.value:.2g})" for row in over if row.kl_cpu)
    return (
        f"KL(CPU || device) is above {bar(floor):.2g}, but of the size of what the CPU differs from itself by (in "
        f"brackets) when the same tokens come one by one: {shown}. Rounding moves a few values over a boundary of the "
        "quantizer, and layer by layer more of them follow: this comparison cannot tell such a pair from a wrong one"
    )


def _limit(row: DeviceRow, floor: float) -> float:
    return bar(max(floor, row.kl_cpu.value if row.kl_cpu else 0.0))


def shortfall(row: DeviceRow, floor: float) -> str:
    """Why that row is not good enough, or an empty string."""
    said = [row.note] if row.note else []
    if row.dispatches == 0 or row.attention == 0 or row.writes == 0:
        said.append("no kernel of cache writes or attention was dispatched")
    said += [f"left the device: {stray}" for stray in row.strays]
    limit = _limit(row, floor)
    if row.pair != CONTROL and not row.kl.value <= limit:
        said.append(f"KL(CPU || device) {row.kl.value:.2g} is above {limit:.2g}")
    if row.kl_f16_device and row.kl_f16_cpu and _apart(row.kl_f16_device, row.kl_f16_cpu):
        said.append(
            f"KL from f16 is {row.kl_f16_device.value:.2g} on the device, {row.kl_f16_cpu.value:.2g} on the CPU"
        )
    return "; ".join(said)


def _apart(one: Interval, other: Interval) -> bool:
    return one.low > other.high or other.low > one.high


def verdict(rows: Sequence[DeviceRow]) -> tuple[Status, str]:
    """Failed by one pair that falls short, open with one above the bar, or without f16/f16, which gives the floor."""
    control = next((row for row in rows if row.pair == CONTROL), None)
    if control is None:
        return Status.INCONCLUSIVE, "f16/f16 was not measured: there is no floor"
    short = [(row.pair, why) for row in rows if (why := shortfall(row, control.kl.value))]
    if short:
        return Status.FAILED, "; ".join(f"{pair}: {why}" for pair, why in short)
    if len(rows) < 2:
        return Status.INCONCLUSIVE, "no pair was measured beside f16/f16"
    open_ = undecided(rows, control.kl.value)
    return (Status.INCONCLUSIVE, open_) if open_ else (Status.PASSED, "")
