"""Plan the memory of a context from file, block sizes and a trial run of llama.cpp, and measure it."""

from __future__ import annotations

import psutil

from tqforge.adapters.gguf_io import ModelFacts
from tqforge.adapters.llama.api.cache import Reserve, Reserved
from tqforge.adapters.llama.api.model import ListDevices
from tqforge.adapters.llama.client import Child
from tqforge.core.pair import Pair
from tqforge.report.schema.rows import MemoryNeed, PlanRow
from tqforge.report.schema.stages import PlanStage
from tqforge.verify.session import Session, padded
from tqforge.verify.settings import Settings

#: A context that would take more of what is free than this is planned, and not made.
_MEASURED_SHARE = 0.6
_LONGEST = 32768
_METHOD = (
    "Planned: weights are the tensors of the file; the cache is cells x values per cell x block size, its cells and "
    "layers taken from a trial run in which llama.cpp allocates nothing (layers with a sliding window apart, as "
    "llama-server keeps them); the compute buffer is what that trial run asks for. Measured: what llama.cpp says it "
    "allocated for the same context, to a hundredth of a MiB. Weights that it packs anew for this CPU count twice."
)
_NOT_MADE = "A context without a measured figure was not made here: it would have taken most of the free memory."


def run(session: Session) -> PlanStage:
    """Plan and measure every pair at every length, the longest last."""
    child = session.model("plan")
    trained = session.facts.trained_context
    n_ctx, lengths = chosen_lengths(session.settings, trained)
    free = psutil.virtual_memory().available
    rows: list[PlanRow] = []
    pairs = session.settings.with_control
    with session.meter("plan", len(lengths) * len(pairs)) as meter:
        for length in lengths:
            for pair in pairs:
                rows.append(_row(session, child, pair, length, free))
                meter.update(len(rows), f"{pair}, {length} tokens")
                session.partial(_stage(session, child, n_ctx, rows))
    return _stage(session, child, n_ctx, rows)


def chosen_lengths(settings: Settings, trained: int) -> tuple[int, tuple[int, ...]]:
    """Return the length of the recommendations and all lengths of the plan, within the trained context."""
    n_ctx = padded(min(settings.plan_context or _LONGEST, trained))
    return n_ctx, tuple(sorted({n_ctx, *(length for length in settings.plan_lengths if length <= trained)}))


def _row(session: Session, child: Child, pair: Pair, n_ctx: int, free: int) -> PlanRow:
    spec = session.context(pair, n_ctx, swa_full=False)
    trial = session.ask(child, Reserve(spec=spec, simulated=True))
    planned = planned_need(pair, trial, child.loaded.sizes(), session.facts)
    measured = None
    if planned.total - planned.weights < _MEASURED_SHARE * free:
        measured = measured_need(session.ask(child, Reserve(spec=spec)), session.model_report.weights)
    return PlanRow(pair=pair, n_ctx=n_ctx, planned=planned, measured=measured)


def planned_need(pair: Pair, trial: Reserved, sizes: dict[str, tuple[int, int]], facts: ModelFacts) -> MemoryNeed:
    """Return the planned bytes. `trial` gives the cells and layers of each cache."""
    (k_block, k_bytes), (v_block, v_bytes) = sizes[pair.k], sizes[pair.v]
    per_cell = facts.k_width * k_bytes / k_block + facts.v_width * v_bytes / v_block
    layers = sum(cache.layers for cache in trial.caches)
    parts = {False: 0.0, True: 0.0}
    for cache in trial.caches:
        parts[cache.sliding] += per_cell * cache.cells * cache.layers / layers
    return MemoryNeed(weights=facts.weights, kv=round(parts[False]), kv_swa=round(parts[True]), compute=trial.compute)


def measured_need(reply: Reserved, weights: int) -> MemoryNeed:
    """Return the bytes of one context from the library's log."""
    kept = {sliding: sum(c.bytes for c in reply.caches if c.sliding is sliding) for sliding in (False, True)}
    return MemoryNeed(weights=weights, kv=kept[False], kv_swa=kept[True], compute=reply.compute)


def _stage(session: Session, child: Child, n_ctx: int, rows: list[PlanRow]) -> PlanStage:
    devices = session.ask(child, ListDevices()).devices if session.gpu_layers else ()
    sets = [device.total for device in devices if device.gpu]
    notes = (_METHOD, *((_NOT_MADE,) if any(row.measured is None for row in rows) else ()))
    return PlanStage(
        n_ctx=n_ctx,
        budgets=session.settings.budgets,
        working_set=max(sets, default=None),
        rows=tuple(rows),
        notes=notes,
    )
