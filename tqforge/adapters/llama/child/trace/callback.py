"""The logits of a fixed path through a model, and the placement of its graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tqforge.adapters.llama.child.engine import ContextSpec, Engine, Tick, Tokens
from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.trace.written_rows import Written
from tqforge.adapters.llama.placement import Placement
from tqforge.errors import LoadError


@dataclass(frozen=True)
class Run:
    """`batches` are evaluated whole; then `steps` tokens follow one by one, `forced` or the most likely ones.

    The rows that each evaluation writes into the cache are kept in the folder `keep`, or replaced by those in `follow`,
    which another run along the same tokens kept there.
    """

    batches: list[Tokens]
    steps: int
    forced: Tokens | None
    save: Path
    keep: Path | None = None
    follow: Path | None = None


def trace(native: Native, engine: Engine, spec: ContextSpec, run: Run, tick: Tick) -> dict[str, Any]:
    """One row of logits per evaluated token goes to `save`. The last token of `steps` is chosen, not evaluated."""
    placement = Placement()
    native.log.watch = placement
    written = Written(native, run.keep, run.follow)
    try:
        engine.open(spec, callback=written.callback if run.keep or run.follow else None)
        reserved = placement.take()
        rows, made = _rows(engine, run, written, tick)
        return {
            "tokens": made,
            "text": engine.detokenize(made),
            "rows": rows,
            "graphs": [*reserved, *placement.take()],
            "cells": engine.cells(),
            "written": written.errors(),
        }
    finally:
        native.log.watch = None
        engine.close_context()


def _rows(engine: Engine, run: Run, written: Written, tick: Tick) -> tuple[int, Tokens]:
    count = sum(len(batch) for batch in run.batches) + max(run.steps - 1, 0)
    kept = np.lib.format.open_memmap(run.save, mode="w+", dtype=np.float32, shape=(count, engine.n_vocab))
    past: Tokens = []

    def evaluate(tokens: Tokens) -> None:
        written.begin(len(past), len(tokens))
        engine.decode(tokens, scored=len(tokens))
        here = slice(len(past), len(past) + len(tokens))
        for i in range(len(tokens)):
            kept[here.start + i] = engine.logits(i)
        if not np.isfinite(kept[here]).all():
            raise LoadError("The logits are not finite.")
        written.end()
        past.extend(tokens)
        tick(len(past))

    for batch in run.batches:
        evaluate(batch)
    made: Tokens = []
    for step in range(run.steps):
        made.append(run.forced[step] if run.forced else int(kept[len(past) - 1].argmax()))
        if step < run.steps - 1:
            evaluate([made[-1]])
    kept.flush()
    return len(past), made
