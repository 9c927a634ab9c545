"""Words for pairs: their names, how far they are from f16, why they are rated so, and which to take."""

from __future__ import annotations

from collections.abc import Iterable

from tqforge.report import fmt
from tqforge.report.judge.thresholds import CHANGED, CLOSE, by_kl
from tqforge.report.schema.base import Choice, Interval, PairLevel
from tqforge.report.schema.rows import PairVerdict, QualityRow, Recommendation

LEVEL_SIGN = {
    PairLevel.SAFE: "\N{CHECK MARK}",
    PairLevel.UNDECIDED: "?",
    PairLevel.LOSSY: "~",
    PairLevel.UNSAFE: "\N{BALLOT X}",
}
#: The sides that llama.cpp rotates by itself, by the value in the report.
ROTATION = {"KV": "keys, values rotated", "K": "keys rotated", "V": "values rotated", "none": "not rotated"}


def name(row: QualityRow | PairVerdict) -> str:
    """Return the pair, and whether llama.cpp's own rotation was switched off for it."""
    return f"{row.pair} without rotation" if row.unrotated else str(row.pair)


def band(kl: Interval) -> str:
    """Say how far a cache is from f16."""
    if by_kl(kl) is PairLevel.UNSAFE:
        return "so far from f16 that the model is unusable"
    if kl.value < CLOSE:
        return "indistinguishable from f16"
    return "close to f16" if kl.value < CHANGED else "clearly different from f16"


def why(verdict: PairVerdict) -> str:
    """Return the figures behind a level: `KL 0.025 (0.022 to 0.028), 9 of 9 needles`."""
    text = f"KL {fmt.kl(verdict.kl.value)} ({fmt.kl_range(verdict.kl)})"
    return f"{text}, {verdict.hits} of {fmt.plural(verdict.needles, 'needle')}" if verdict.needles else text


def levels(verdicts: Iterable[PairVerdict], reach: int) -> str:
    """Return the levels of all pairs in one sentence; empty if none was rated."""
    judged = [one for one in verdicts if not one.unrotated]
    names = {level: [name(one) for one in judged if one.level is level] for level in PairLevel}
    parts = [f"{level}: {fmt.listing(some)}" for level, some in names.items() if some]
    return f"On this model, up to {fmt.count(reach)} tokens, {'; '.join(parts)}." if parts else ""


def recommendation(choice: Recommendation) -> str:
    """Return one recommendation with its reason."""
    place = f"{fmt.memory(choice.budget)} of memory, {fmt.count(choice.n_ctx)} tokens"
    tail = fmt.sentence(fmt.ending(reason(choice)))
    if not choice.pair:
        return f"{place}: no safe pair fits. {tail}"
    need = f" (needs {fmt.size(choice.need)})" if choice.need is not None else ""
    return f"{place}: {choice.pair}{need}. {tail}"


def reason(choice: Recommendation) -> str:
    """Return why this pair was chosen, or why none was."""
    match choice.outcome:
        case Choice.NOT_MEASURED:
            return "no recommendation without measured quality: run the stages quality and needle as well"
        case Choice.REFERENCE:
            return "f16 itself fits"
        case Choice.TOO_SMALL:
            least = f"the smallest safe pair, {choice.smallest}, needs {fmt.size(choice.smallest_need)}"
            return f"{least}; what fits is not safe here: {_levels(choice)}" if choice.unsafe else f"{least}; none fits"
    return "; ".join(_chosen(choice))


def _chosen(choice: Recommendation) -> list[str]:
    assert choice.verdict is not None
    parts = [f"safe on this model: {why(choice.verdict)}"]
    if not choice.verdict.needles:
        parts.append("rated by KL alone, without needles")
    if choice.closer:
        need = f"{fmt.listing(map(str, choice.closer))} would need {fmt.size(choice.closer_need)} or more"
        parts.append(f"closer to f16, but {need}; {fmt.size(choice.usable)} is usable")
    if choice.unsafe:
        parts.append(f"smaller, but not safe here: {_levels(choice)}")
    return parts


def _levels(choice: Recommendation) -> str:
    return fmt.listing(f"{one.pair} ({one.level})" for one in choice.unsafe)
