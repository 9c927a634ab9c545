"""Check in the scheduler's log that cache writes and attention run on the device; a refused pair is the control."""

from __future__ import annotations

from collections.abc import Sequence

from tqforge.adapters.llama.graphs import ATTENTION, SET_ROWS
from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import Pair
from tqforge.errors import LoadError
from tqforge.report.schema.base import Check, StageStatus
from tqforge.report.schema.stages import CheckStage
from tqforge.verify import device
from tqforge.verify.device import Device
from tqforge.verify.session import Session
from tqforge.verify.stages.device import compare, trace
from tqforge.verify.stages.device.compare import TraceResult
from tqforge.verify.stages.device.stage import pairs
from tqforge.verify.stages.device.trace import TokenPlan
from tqforge.verify.stages.ops.backend_ops import REFERENCE_OP_TYPE

#: Metal's fused attention takes no such pair: its attention must be seen on the CPU, or the check is blind.
REFUSED = Pair("q4_1", TQ3_0)
_TOKENS = ((1, 2, 3),)
#: Types whose attention kernels the host has for both sides; unequal stock pairs are refused by every Metal.
_COMPILED = ("f16", REFERENCE_OP_TYPE, TQ3_0)
_METHOD = (
    "llama.cpp's scheduler prints where each op of a graph stands (GGML_SCHED_DEBUG=2): the graphs it reserves for "
    "prompts and for single tokens, and those of four tokens that are then evaluated with all layers on the device. A "
    "cache write (SET_ROWS) or an attention (FLASH_ATTN_EXT) anywhere else is a fallback. One split for the embedding "
    "on the CPU and one for the rest is all there should be."
)


def run(session: Session) -> CheckStage:
    """Check every pair, then the one that the device refuses."""
    there = device.find(session)
    model = trace.f16_copy(session) if there.is_emulator else session.facts.path
    asked = tuple(dict.fromkeys((*pairs(), *(pair for pair in session.settings.pairs if pair != REFUSED))))
    checks: list[Check] = []
    with (
        session.meter("placement", len(asked) + 1) as meter,
        trace.load(session, model, there, "placement") as loaded,
    ):
        for done, pair in enumerate((*asked, REFUSED), 1):
            checks.append(_one(loaded, pair, there))
            meter.update(done, str(pair))
            session.partial(_stage(checks))
    return _stage(checks)


def _one(loaded: trace.TracedModel, pair: Pair, there: Device) -> Check:
    if there.is_emulator and pair.k == pair.v and pair.k not in _COMPILED:
        why = f"the Metal emulator is compiled without the kernels of {pair}; they are upstream's own"
        return Check(name=str(pair), status=StageStatus.SKIPPED, reason=why)
    try:
        seen = loaded.trace(pair, TokenPlan(_TOKENS, 2), lambda _: None)
    except LoadError as error:
        where = f" ({error.where})" if error.where else ""
        return Check(name=str(pair), status=StageStatus.FAILED, expected="a run", observed=f"{error.what}{where}")
    return control(seen) if pair == REFUSED else check(str(pair), seen)


def check(pair: str, seen: TraceResult) -> Check:
    """Check that all cache writes and attention of a pair are on the device, at least one of each."""
    strays = compare.strays(seen.graphs, device.NAME)
    there = compare.placed(seen.graphs, device.NAME)
    idle = seen.dispatches is not None and not any(
        "flash_attn_ext" in kernel and count for kernel, count in seen.dispatches.items()
    )
    problems = [*strays, *(["no attention was dispatched"] if idle else []), *([seen.faults] if seen.faults else [])]
    good = not problems and min(there.values()) > 0
    return Check(
        name=pair,
        status=StageStatus.PASSED if good else StageStatus.FAILED,
        expected=f"every cache write and attention on {device.NAME}",
        observed="; ".join(problems) or _seen(there, seen),
        cases=len(seen.graphs),
    )


def control(seen: TraceResult) -> Check:
    """Check that a known fallback is noticed, or the other checks mean nothing."""
    strays = compare.strays(seen.graphs, device.NAME)
    found = any(stray.startswith(ATTENTION) for stray in strays)
    return Check(
        name=f"control: {REFUSED}, which the device refuses",
        status=StageStatus.PASSED if found else StageStatus.FAILED,
        expected="its attention seen elsewhere",
        observed="; ".join(strays) or _seen(compare.placed(seen.graphs, device.NAME), seen),
        reason="" if found else "a fallback is not noticed here, or the device takes this pair now",
        cases=len(seen.graphs),
    )


def _seen(there: dict[str, int], seen: TraceResult) -> str:
    splits = max((graph.splits for graph in seen.graphs), default=0)
    return (
        f"{there[SET_ROWS]} {SET_ROWS} and {there[ATTENTION]} {ATTENTION}_EXT on {device.NAME}, {splits} graph splits"
        + (f", {sum(seen.dispatches.values())} dispatches" if seen.dispatches is not None else "")
    )


def _stage(checks: Sequence[Check]) -> CheckStage:
    return CheckStage(name="placement", checks=tuple(checks), notes=(_METHOD,))
