"""The lab's child process: `python -P -m tqforge.lab.child.process REQUEST.json`. Prints one JSON line per result."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.api.model import ALL_LAYERS, ContextSpec
from tqforge.adapters.llama.child.engine import Engine, Tokens
from tqforge.adapters.llama.child.native import Native
from tqforge.adapters.llama.child.passage import Passage, PassageScores, Reader
from tqforge.errors import ContextLengthError
from tqforge.lab.child.describe import Collector
from tqforge.lab.child.rewrite import Floats, Held, RowRewriter, Seen
from tqforge.lab.codecs.calibration import Calibration, Moments
from tqforge.lab.codecs.registry import codec
from tqforge.lab.request import Answers, Capture, Request, Scores, Trial

REFERENCE = Trial(k="f16", v="f16")
_ANSWER_TOKENS = 48
#: With a window of exact recent tokens, batches must be small beside it: all tokens of a batch see the same cells.
_RECENT_BATCH = 32
_CELLS = 256  # llama.cpp rounds contexts up to whole multiples


class Lab:
    """One loaded model, and the runs that the request asks for."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._native = Native(request.library, request.bindings)
        layers = ALL_LAYERS if self._native.api.llama_supports_gpu_offload() else 0
        self._engine = Engine(self._native, request.model, layers)
        self._calibration: dict[int, Calibration] = {}

    def results(self) -> Iterator[Scores | Answers | Capture]:
        """Measure the f16 reference first, then every trial; each result comes as soon as it is known."""
        if any(trial.calibrated for trial in (*self._request.trials, *self._request.prompt_trials)):
            self._calibrate()
        if self._request.capture:
            yield self._capture()
        if self._request.trials:
            yield from self._scored()
        for trial in self._request.prompt_trials:
            yield self._answers(trial)

    def _scored(self) -> Iterator[Scores]:
        passage = self._passage()
        saved = self._request.scratch / "reference-logits.npy"
        try:
            yield self._score(REFERENCE, passage, None, saved)
            for trial in self._request.trials:
                yield self._score(trial, passage, saved, None)
        finally:
            saved.unlink(missing_ok=True)

    def _score(self, trial: Trial, passage: Passage, reference: Path | None, save: Path | None) -> Scores:
        start = time.monotonic()
        rewriter = self._open(trial, len(passage.tokens))
        try:
            found = Reader(self._engine, passage).read(reference, save, None)
        finally:
            self._engine.close_context()
        if rewriter:
            rewriter.check()
        return _scores(trial, found, time.monotonic() - start)

    def _answers(self, trial: Trial) -> Answers:
        start, texts = time.monotonic(), []
        prompts = [self._tokens(prompt.text, special=True) for prompt in self._request.prompts]
        rewriter = self._open(trial, max(map(len, prompts)) + _ANSWER_TOKENS)
        try:
            for tokens in prompts:
                self._engine.keep(0)
                self._engine.decode(tokens, scored=1)
                made, _ = self._engine.generate(_ANSWER_TOKENS)
                texts.append(self._engine.detokenize(made))
        finally:
            self._engine.close_context()
        if rewriter:
            rewriter.check()
        return Answers(trial=trial, texts=tuple(texts), seconds=time.monotonic() - start)

    def _capture(self) -> Capture:
        collector = Collector(self._request.head_k)
        self._read_calibration_text(collector.held, collector.seen)
        return collector.describe()

    def _calibrate(self) -> None:
        moments: dict[int, Moments] = defaultdict(partial(Moments, self._request.head_k))

        def held(side: str, layer: int, cells: NDArray[np.int64], rows: Floats) -> Floats:
            if side == "k":
                moments[layer].add_keys(cells, rows)
            return rows

        self._read_calibration_text(held, lambda layer, queries: moments[layer].add_queries(queries))
        self._calibration = {layer: one.calibrate() for layer, one in moments.items()}

    def _read_calibration_text(self, held: Held, seen: Seen) -> None:
        tokens = self._tokens(self._request.calibration, special=False)
        rewriter = RowRewriter(self._native, held, seen=seen)
        self._engine.open(self._spec(len(tokens), self._request.batch), callback=rewriter.callback)
        try:
            self._engine.decode(tokens, scored=1)
        finally:
            self._engine.close_context()
        rewriter.check()

    def _open(self, trial: Trial, tokens: int) -> RowRewriter | None:
        """Open a context for a trial; None where the library's own cache types hold the rows."""
        batch = _RECENT_BATCH if trial.recent else self._request.batch
        if trial.real or trial == REFERENCE:
            self._engine.open(self._spec(tokens, batch, trial.k, trial.v))
            return None
        sides = {"k": (codec(trial.k), self._request.head_k), "v": (codec(trial.v), self._request.head_v)}

        def held(side: str, layer: int, _cells: NDArray[np.int64], rows: Floats) -> Floats:
            one, head = sides[side]
            if side == "v" or not trial.calibrated:
                return one.roundtrip(rows, head)
            calibration = self._calibration[layer]
            return calibration.from_stored(one.roundtrip(calibration.to_stored(rows), head))

        rewriter = RowRewriter(self._native, held, first=trial.first, recent=trial.recent)
        self._engine.open(self._spec(tokens, batch), callback=rewriter.callback)
        return rewriter

    def _spec(self, tokens: int, batch: int, k: str = "f16", v: str = "f16") -> ContextSpec:
        n_ctx = -(-tokens // _CELLS) * _CELLS
        return ContextSpec(k=k, v=v, n_ctx=n_ctx, n_batch=batch, threads=self._request.threads)

    def _tokens(self, text: str, *, special: bool) -> Tokens:
        return self._engine.tokenize(text, add_special=not special, parse_special=special)

    def _passage(self) -> Passage:
        last = self._request.windows[-1][0] + self._request.windows[-1][1]
        tokens = self._tokens(self._request.text, special=False)
        if len(tokens) < last:
            raise ContextLengthError(f"The text has {len(tokens)} tokens for this model; {last} are needed.")
        return Passage(tokens=tokens[:last], windows=self._request.windows)


def _scores(trial: Trial, found: PassageScores, seconds: float) -> Scores:
    return Scores(
        trial=trial,
        kl=tuple(score.kl or 0.0 for score in found.scores),
        nll=tuple(score.nll for score in found.scores),
        same_top=tuple(score.same_top is not False for score in found.scores),
        seconds=seconds,
    )


def main() -> None:
    """Keep the real standard output for results: native code that prints must not break them."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = Request.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for result in Lab(request).results():
        results.write(result.model_dump_json() + "\n")
        results.flush()


if __name__ == "__main__":
    main()
