"""Record the logits of a sequence of tokens and the backends of its graphs."""

from __future__ import annotations

import numpy as np

from tqforge.adapters.llama.api.measure import Trace, Traced
from tqforge.adapters.llama.child.engine import Engine, Tick, Tokens
from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.trace.written_rows import WrittenRows
from tqforge.adapters.llama.graphs import SchedulerLog
from tqforge.errors import LoadError


def trace(native: Native, engine: Engine, request: Trace, tick: Tick) -> Traced:
    """Run the request; the logits go to the file `request.save`, float32 of shape (tokens, vocabulary).

    The last of the `steps` tokens is chosen but not evaluated.
    """
    scheduler = SchedulerLog()
    native.log.watch = scheduler
    written = WrittenRows(native, request.keep, request.follow)
    try:
        engine.open(request.spec, callback=written.callback if request.keep or request.follow else None)
        reserved = scheduler.take()
        rows, made = _rows(engine, request, written, tick)
        return Traced(
            tokens=tuple(made),
            text=engine.detokenize(made),
            rows=rows,
            graphs=(*reserved, *scheduler.take()),
            cells=engine.cells(),
            written=tuple(written.errors()),
        )
    finally:
        native.log.watch = None
        engine.close_context()


def _rows(engine: Engine, run: Trace, written: WrittenRows, tick: Tick) -> tuple[int, Tokens]:
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
        evaluate(list(batch))
    made: Tokens = []
    for step in range(run.steps):
        made.append(run.forced[step] if run.forced else int(kept[len(past) - 1].argmax()))
        if step < run.steps - 1:
            evaluate([made[-1]])
    kept.flush()
    return len(past), made
