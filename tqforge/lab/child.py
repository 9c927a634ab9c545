"""The lab's child process: `python -P -m tqforge.lab.child REQUEST.json`. Prints one JSON line per trial."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.child.engine import ContextSpec, Engine
from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.passage import Found, Passage, Reader
from tqforge.errors import ContextLengthError
from tqforge.lab.registry import codec
from tqforge.lab.request import Request, Scores, Trial
from tqforge.lab.rewrite import RowRewriter

Floats = NDArray[np.float32]
REFERENCE = Trial(k="f16", v="f16")
_ALL = 999


def serve(request: Request, out: TextIO) -> None:
    """Measure the reference, then every trial; each is one line as soon as it is known."""
    native = Native(request.library, request.bindings)
    engine = Engine(native, request.model, _ALL if native.api.llama_supports_gpu_offload() else 0)
    passage = _passage(engine, request)
    saved = request.scratch / "reference-logits.npy"
    try:
        for trial in (REFERENCE, *request.trials):
            start = time.monotonic()
            first = trial is REFERENCE
            found = _run(native, engine, request, trial, passage, reference=None if first else saved, save=saved)
            out.write(_scores(trial, found, time.monotonic() - start).model_dump_json() + "\n")
            out.flush()
    finally:
        saved.unlink(missing_ok=True)


def _passage(engine: Engine, request: Request) -> Passage:
    last = request.windows[-1][0] + request.windows[-1][1]
    tokens = engine.tokenize(request.text, add_special=True, parse_special=False)
    if len(tokens) < last:
        raise ContextLengthError(f"The text has {len(tokens)} tokens for this model; {last} are needed.")
    return Passage(tokens=tokens[:last], windows=request.windows)


def _run(
    native: Native, engine: Engine, request: Request, trial: Trial, passage: Passage, *, reference: Path | None,
    save: Path,
) -> Found:  # fmt: skip
    rewriter = None if reference is None else RowRewriter(native, _held(request, trial))
    n_ctx = -(-len(passage.tokens) // 256) * 256
    spec = ContextSpec(k="f16", v="f16", n_ctx=n_ctx, threads=request.threads)
    engine.open(spec, callback=rewriter.callback if rewriter else None)
    try:
        found = Reader(engine, passage).read(reference, None if reference else save, None)
    finally:
        engine.close_context()
    if rewriter:
        rewriter.check()
    return found


def _held(request: Request, trial: Trial):  # type: ignore[no-untyped-def]
    sides = {"k": (codec(trial.k), request.head_k), "v": (codec(trial.v), request.head_v)}

    def held(side: str, _layer: int, _cells: NDArray[np.int64], rows: Floats) -> Floats:
        one, head = sides[side]
        return one.roundtrip(rows, head)

    return held


def _scores(trial: Trial, found: Found, seconds: float) -> Scores:
    columns = list(zip(*((score.kl or 0.0, score.nll, bool(score.same_top)) for score in found.scores), strict=True))
    return Scores(trial=trial, kl=columns[0], nll=columns[1], same_top=columns[2], seconds=seconds)


def main() -> None:
    """Keep the real standard output for answers: native code that prints must not break them."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(Request.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8")), answers)


if __name__ == "__main__":
    main()
