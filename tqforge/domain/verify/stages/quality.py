"""How far the model's next-token distributions move: KL(f16 || pair), top-1 agreement, perplexity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tqforge.adapters.llama.client import Child
from tqforge.domain.model import Pair
from tqforge.domain.report.schema import QualityRow, QualityStage, Status
from tqforge.domain.verify import texts
from tqforge.domain.verify.pairs import bits_per_value, check_lengths
from tqforge.domain.verify.session import Session, padded
from tqforge.domain.verify.settings import CONTROL, N_BATCH
from tqforge.domain.verify.stats import block_bootstrap
from tqforge.errors import ContextLengthError

#: Above this mean KL (nats) with top-1 agreement below the other, a model no longer says what it said.
BROKEN_KL, BROKEN_TOP1 = 1.0, 0.6

_METHOD = (
    "The same tokens are evaluated with an f16 cache and with each pair; the distributions of the last tokens are "
    "compared over the whole vocabulary in float64. Intervals come from a block bootstrap over the scored tokens. The "
    "floor is f16 against f16 with half the batch size: the noise that summation order alone makes."
)


def run(session: Session) -> QualityStage:
    """f16 first (its logits are kept in a file), then the floor and every other pair."""
    settings = session.settings
    prefix, scored = settings.quality_prefix, settings.quality_scored
    check_lengths([prefix + scored], 0, session.facts)
    child = session.model("quality")
    tokens = _tokens(session, child, prefix + scored)
    reference = session.folder / "reference-logits.npy"
    rows: list[QualityRow] = []
    pairs = [pair for pair in settings.with_control if pair != CONTROL]
    try:
        with session.meter("quality", len(tokens) * (len(pairs) + 2)) as meter:
            base = _score(session, child, CONTROL, tokens, {"save": str(reference)})
            meter.update(len(tokens), str(CONTROL))
            floor = _score(session, child, CONTROL, tokens, {"reference": str(reference), "n_batch": N_BATCH // 2})
            rows.append(_row(session, child, CONTROL, floor, base))
            for done, pair in enumerate(pairs, 2):
                meter.update(done * len(tokens), str(pair))
                reply = _score(session, child, pair, tokens, {"reference": str(reference)})
                rows.append(_row(session, child, pair, reply, base))
                session.partial(_stage(session, rows))
    finally:
        reference.unlink(missing_ok=True)
    return _stage(session, rows)


def _tokens(session: Session, child: Child, count: int) -> list[int]:
    """The first tokens of the text, with the special token the model begins texts with."""
    tokens = session.tokenize(child, [texts.quality().content])[0]
    if session.model_says.get("adds_bos") and session.facts.bos_id is not None:
        tokens = [session.facts.bos_id, *tokens]
    if len(tokens) < count:
        raise ContextLengthError(f"The quality text has {len(tokens)} tokens for this model; {count} are needed.")
    return tokens[:count]


def _score(session: Session, child: Child, pair: Pair, tokens: list[int], more: dict[str, Any]) -> dict[str, Any]:
    context = session.context(pair, padded(len(tokens)))
    args = context | {"tokens": tokens, "count": session.settings.quality_scored} | more
    return child.call("score", args, timeout=session.settings.timeout)


def _row(session: Session, child: Child, pair: Pair, reply: dict[str, Any], base: dict[str, Any]) -> QualityRow:
    kl = np.array(reply["kl"], dtype=np.float64)
    top = np.array(reply["same_top"], dtype=np.float64)
    return QualityRow(
        pair=str(pair),
        bits=bits_per_value(pair, session.facts, session.sizes(child)),
        prefix=session.settings.quality_prefix,
        tokens=len(kl),
        kl=block_bootstrap(kl),
        kl_p99=float(np.quantile(kl, 0.99)),
        kl_max=float(kl.max()),
        top1=block_bootstrap(top),
        perplexity=perplexity(reply["nll"]),
        perplexity_reference=perplexity(base["nll"]),
        is_floor=pair == CONTROL,
        rotation=rotation(reply["rotation"]),
    )


def perplexity(nll: list[float]) -> float:
    """Of the scored tokens."""
    return math.exp(sum(nll) / len(nll))


def rotation(seen: dict[str, bool]) -> str:
    """Which sides llama.cpp itself rotates, as its load log says."""
    sides = "".join(side.upper() for side in ("k", "v") if seen.get(side))
    return sides or ("none" if seen else "not stated")


def _stage(session: Session, rows: list[QualityRow]) -> QualityStage:
    text = texts.quality()
    status, reason = verdict(rows)
    return QualityStage(
        status=status,
        reason=reason,
        text=text.name,
        text_sha256=text.sha256,
        prefix=session.settings.quality_prefix,
        scored=session.settings.quality_scored,
        rows=tuple(rows),
        notes=(_METHOD,),
    )


def verdict(rows: list[QualityRow]) -> tuple[Status, str]:
    """Failed when a pair breaks the model; how good the others are is for the reader of the figures."""
    broken = [row for row in rows if row.kl.value > BROKEN_KL and row.top1.value < BROKEN_TOP1]
    if not rows:
        return Status.INCONCLUSIVE, "nothing was measured"
    if broken:
        shown = (f"{row.pair} (KL {row.kl.value:.2f}, top-1 {row.top1.value:.0%})" for row in broken)
        return Status.FAILED, f"breaks this model: {', '.join(shown)}"
    return Status.PASSED, ""
