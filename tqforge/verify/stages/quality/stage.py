"""Measure the distance from f16: KL(f16 || pair), top-1 agreement, perplexity, greedy continuations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.api.cache import Score, Scored
from tqforge.adapters.llama.api.model import ContextSpec
from tqforge.adapters.llama.client import Child
from tqforge.core.pair import F16, Pair
from tqforge.core.reporter import Meter
from tqforge.errors import ContextLengthError
from tqforge.report.schema.rows import Greedy, QualityRow
from tqforge.report.schema.stages import QualityStage
from tqforge.verify import corpus
from tqforge.verify.pairs import bits_per_value, check_lengths
from tqforge.verify.session import Session, padded
from tqforge.verify.settings import N_BATCH
from tqforge.verify.stages.quality import windows as qualityplan
from tqforge.verify.stats import block_bootstrap, growth, percentile99

#: Small enough that llama.cpp takes its other path through attention: what differs then is rounding, not the cache.
_FLOOR_BATCH = N_BATCH // 8
_METHOD = (
    "The same tokens are evaluated with an f16 cache and with each pair; after each prefix the distributions of the "
    "scored tokens are compared over the whole vocabulary in float64. Intervals come from a block bootstrap over these "
    f"tokens. The noise is f16 against f16 in batches of {_FLOOR_BATCH} instead of {N_BATCH}: the same figures summed "
    "in another order. Greedy: from several places of the text the most likely token is taken again and again, one at "
    "a time, and counted until it is another than f16's; the interval is over the places."
)
_NO_ROTATION = "Rows without rotation were measured with LLAMA_ATTN_ROT_DISABLE=1, which llama.cpp's users do not set."


@dataclass(frozen=True)
class _Plan:
    """The tokens that every pair reads."""

    tokens: list[int]
    windows: tuple[qualityplan.Window, ...]
    starts: tuple[int, ...]

    def cost(self, limit: int) -> int:
        return len(self.tokens) + len(self.starts) * limit

    def score(
        self,
        spec: ContextSpec,
        limit: int,
        *,
        reference: Path | None = None,
        made: tuple[tuple[int, ...], ...] | None = None,
        save: Path | None = None,
    ) -> Score:
        """Return the request of one run over the text."""
        return Score(
            spec=spec, tokens=tuple(self.tokens), windows=self.windows, starts=self.starts, limit=limit,
            reference=reference, made=made, save=save,
        )  # fmt: skip


@dataclass
class _Run:
    """A running stage."""

    session: Session
    child: Child
    plan: _Plan
    meter: Meter
    base: Scored
    rows: list[QualityRow]
    done: int = 1

    def measure(self, request: Score, pair: Pair, note: str = "") -> Scored:
        cost = self.plan.cost(self.session.settings.greedy_tokens)
        self.meter.update(self.done * cost, f"{pair}{note}")

        def tick(tokens: int) -> None:
            self.meter.update(self.done * cost + tokens, f"{pair}{note}")

        reply = self.session.ask(self.child, request, tick)
        self.done += 1
        return reply

    def compared(self, reference: Path, spec: ContextSpec) -> Score:
        """Return the request for a run that is compared with f16."""
        return self.plan.score(spec, self.session.settings.greedy_tokens, reference=reference, made=self.base.made)

    def add(self, pair: Pair, reply: Scored, *, unrotated: bool = False) -> None:
        bits = bits_per_value(pair, self.session.facts, self.child.loaded.sizes())
        limit = self.session.settings.greedy_tokens
        self.rows += rows_of(pair, bits, self.plan.windows, reply, self.base, limit=limit, unrotated=unrotated)
        self.session.partial(_stage(self.session, self.plan, self.rows))


def run(session: Session) -> QualityStage:
    """Measure f16 (its logits are kept in a file), the noise, every other pair, and those without rotation."""
    settings, child = session.settings, session.model("quality")
    plan = _plan(session, child)
    reference = session.folder / "reference-logits.npy"
    others = [pair for pair in settings.with_control if pair != F16]
    steps = len(others) * (2 if settings.rotations else 1) + 2
    try:
        with session.meter("quality", steps * plan.cost(settings.greedy_tokens)) as meter:
            base = session.ask(child, plan.score(_spec(session, plan, F16), settings.greedy_tokens, save=reference))
            one = _Run(session, child, plan, meter, base, [])
            small = one.compared(reference, _spec(session, plan, F16, n_batch=_FLOOR_BATCH))
            one.add(F16, one.measure(small, F16, " against itself"))
            rotated = []
            for pair in others:
                reply = one.measure(one.compared(reference, _spec(session, plan, pair)), pair)
                one.add(pair, reply)
                rotated += [pair] if rotation(reply.rotation) not in ("none", "not stated") else []
            for pair in rotated if settings.rotations else ():
                request = one.compared(reference, _spec(session, plan, pair, rotate=False))
                one.add(pair, one.measure(request, pair, " without rotation"), unrotated=True)
    finally:
        reference.unlink(missing_ok=True)
    return _stage(session, plan, one.rows)


def _plan(session: Session, child: Child) -> _Plan:
    """Tokenize the text. Raises ContextLengthError if text or model is too short for the prefixes."""
    settings = session.settings
    scored = qualityplan.windows(settings.quality_prefixes, settings.quality_scored)
    longest = scored[-1][0] + scored[-1][1]
    check_lengths([longest + settings.greedy_tokens], 0, session.facts)
    tokens = session.tokenize(child, [corpus.quality().content])[0]
    if session.model_report.adds_bos and session.facts.bos_id is not None:
        tokens = [session.facts.bos_id, *tokens]
    if len(tokens) < longest:
        raise ContextLengthError(f"The quality text has {len(tokens)} tokens for this model; {longest} are needed.")
    return _Plan(tokens[:longest], scored, qualityplan.starts(scored, settings.greedy_starts))


def _spec(session: Session, plan: _Plan, pair: Pair, *, n_batch: int = N_BATCH, rotate: bool = True) -> ContextSpec:
    n_ctx = padded(len(plan.tokens) + session.settings.greedy_tokens)
    return session.context(pair, n_ctx, n_batch=n_batch, rotate=rotate)


def rows_of(
    pair: Pair,
    bits: float,
    windows: tuple[qualityplan.Window, ...],
    reply: Scored,
    base: Scored,
    *,
    limit: int,
    unrotated: bool = False,
) -> list[QualityRow]:
    """Return one row per window; the greedy figures belong to the whole text and are in each."""
    found, first = [], 0
    made = greedy(list(reply.equal), limit)
    for prefix, count in windows:
        part = slice(first, first + count)
        kl, nll, wanted = (np.array(column[part]) for column in (reply.kl, reply.nll, base.nll))
        row = QualityRow(
            pair=pair,
            bits=bits,
            prefix=prefix,
            tokens=count,
            kl=block_bootstrap(kl),
            kl_p99=block_bootstrap(kl, statistic=percentile99),
            kl_max=float(kl.max()),
            top1=block_bootstrap(np.array(reply.same_top[part], dtype=np.float64)),
            perplexity=perplexity(nll),
            perplexity_reference=perplexity(wanted),
            perplexity_ratio=block_bootstrap(nll - wanted, statistic=growth),
            greedy=made,
            is_floor=pair == F16,
            rotation=rotation(reply.rotation),
            unrotated=unrotated,
        )
        found.append(row)
        first += count
    return found


def greedy(equal: list[int], limit: int) -> Greedy | None:
    """Summarize the tokens per start that are equal before the first difference."""
    if not equal:
        return None
    counts = np.array(equal, dtype=np.float64)
    return Greedy(
        limit=limit,
        equal=tuple(equal),
        mean=block_bootstrap(counts, block=1),
        same=float((counts >= limit).mean()),
    )


def perplexity(nll: NDArray[np.float64]) -> float:
    """Return the perplexity of the scored tokens."""
    return math.exp(float(nll.mean()))


def rotation(seen: dict[str, bool]) -> str:
    """Return the sides that llama.cpp itself rotates, according to its log."""
    sides = "".join(side.upper() for side in ("k", "v") if seen.get(side))
    return sides or ("none" if seen else "not stated")


def _stage(session: Session, plan: _Plan, rows: list[QualityRow]) -> QualityStage:
    text, settings = corpus.quality(), session.settings
    return QualityStage(
        text=text.name,
        text_sha256=text.sha256,
        prefixes=settings.quality_prefixes,
        scored=settings.quality_scored,
        greedy_at=plan.starts,
        greedy_tokens=settings.greedy_tokens,
        rows=tuple(rows),
        notes=(_METHOD, *((_NO_ROTATION,) if any(row.unrotated for row in rows) else ())),
    )
