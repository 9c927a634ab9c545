"""Two runs of one model over the same tokens, on a device and on the CPU: what their logits say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama import divergence
from tqforge.adapters.llama.placement import ATTENTION, SET_ROWS
from tqforge.core.pair import F16, Pair
from tqforge.report.schema.base import Interval, StageStatus
from tqforge.report.schema.rows import DeviceRow
from tqforge.verify.stats import block_bootstrap

Logits = NDArray[np.float32]
#: After the same rows, KL(CPU || device) of a pair may be this many times that of f16/f16, and this much more.
FACTOR, SLACK = 2.0, 1e-3
#: The squared error of what the device writes may be this many times the CPU's, and this much more.
WRITE_FACTOR, WRITE_SLACK = 1.1, 1e-4
_CPU = "CPU"
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
    #: Per cache tensor, over the squared values: squared error of this run's rows, and of those put in their place.
    written: Sequence[tuple[str, float, float]] = ()


@dataclass(frozen=True)
class Both:
    """The same tokens on the device and on the CPU; after the prompt the device follows the CPU's greedy choice.

    `single` is the CPU again, with the same tokens one by one. `same` is the CPU again, with every row of its cache
    replaced by the device's as soon as it is written.
    """

    pair: Pair
    prompt: int  # tokens that are the same for all pairs
    device: Run
    cpu: Run
    single: Run | None = None
    same: Run | None = None


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
        splits=max((graph["splits"] for graph in both.device.graphs), default=0),
        strays=strays(both.device.graphs, device),
        dispatches=None if ran is None else sum(ran.values()),
        attention=_count(ran, "flash_attn_ext"),
        writes=_count(ran, "set_rows"),
        seconds=round(both.device.seconds, 1),
        note="; ".join(filter(None, (both.device.faults, _not_on_the_cpu(both), _one_side_off(errors)))),
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


def _one_side_off(errors: Sequence[tuple[str, float, float]]) -> str:
    """K and V by themselves: beside V of 3 bits a wrong K of 8 bits is lost in the mean."""
    said = []
    for side in ("k", "v"):
        found = [(cpu, device) for name, cpu, device in errors if name.startswith(f"cache_{side}")]
        if found:
            cpu, device = np.mean(found, axis=0)
            said.append(_off(f"the {side.upper()} that", float(cpu), float(device)))
    return "; ".join(filter(None, said))


def _not_on_the_cpu(both: Both) -> str:
    """A reference that ran on the device as well would agree with it, right or wrong."""
    runs = [run for run in (both.cpu, both.single, both.same) if run]
    found = {stray for run in runs for stray in strays(run.graphs, _CPU)}
    return f"the CPU's own run had {', '.join(sorted(found))}" if found else ""


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


def floor(control: DeviceRow) -> float:
    """What two backends differ by with an exact cache."""
    return (control.kl_same or control.kl).value


def bar(floor: float) -> float:
    return FACTOR * floor + SLACK


def with_bars(rows: Sequence[DeviceRow]) -> tuple[DeviceRow, ...]:
    """Each pair with what it may come to; f16/f16, the first, has none."""
    return tuple(row if row.pair == F16 else row.model_copy(update={"bar": bar(floor(rows[0]))}) for row in rows)


def _reads(row: DeviceRow, floor: float) -> str:
    if row.pair == F16 or row.kl_same is None or row.kl_same.value <= bar(floor):
        return ""
    return f"KL(CPU || device) {row.kl_same.value:.2g} after the same rows is above {bar(floor):.2g}"


def _writes(row: DeviceRow) -> str:
    if row.error_device is None or row.error_cpu is None:
        return ""
    return _off("what", row.error_cpu, row.error_device)


def _off(what: str, cpu: float, device: float) -> str:
    if device <= WRITE_FACTOR * cpu + WRITE_SLACK:
        return ""
    return f"{what} it wrote is off by {device:.2g} of its square, on the CPU by {cpu:.2g}"


def shortfall(row: DeviceRow, floor: float) -> str:
    """Why that row is not good enough, or an empty string."""
    said = [row.note] if row.note else []
    if row.dispatches == 0 or row.attention == 0 or row.writes == 0:
        said.append("no kernel of cache writes or attention was dispatched")
    said += [f"left the device: {stray}" for stray in row.strays]
    said += [why for why in (_reads(row, floor), _writes(row)) if why]
    if row.kl_f16_device and row.kl_f16_cpu and _apart(row.kl_f16_device, row.kl_f16_cpu):
        said.append(
            f"KL from f16 is {row.kl_f16_device.value:.2g} on the device, {row.kl_f16_cpu.value:.2g} on the CPU"
        )
    return "; ".join(said)


def _apart(one: Interval, other: Interval) -> bool:
    return one.low > other.high or other.low > one.high


def verdict(rows: Sequence[DeviceRow]) -> tuple[StageStatus, str]:
    """Failed by one pair that falls short; open without f16/f16, which gives the floor, or without the same rows."""
    control = next((row for row in rows if row.pair == F16), None)
    if control is None:
        return StageStatus.INCONCLUSIVE, "f16/f16 was not measured: there is no floor"
    short = [(row.pair, why) for row in rows if (why := shortfall(row, floor(control)))]
    if short:
        return StageStatus.FAILED, "; ".join(f"{pair}: {why}" for pair, why in short)
    if len(rows) < 2:
        return StageStatus.INCONCLUSIVE, "no pair was measured beside f16/f16"
    unseen = [row.pair for row in rows if row.kl_same is None or row.error_device is None]
    if unseen:
        return StageStatus.INCONCLUSIVE, f"not compared after the same rows: {', '.join(map(str, unseen))}"
    return StageStatus.PASSED, ""
