"""Claims about what real keys and values look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from tqforge.lab.claims.claim import Claim, Evidence, Verdict, on_all, undecided

_NORMAL = 0.3
_THEORY = {2: 0.1175, 3: 0.03454, 4: 0.0095}


def _kurtosis(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        before = fmean(layer.kurtosis for layer in one.layers)
        after = fmean(layer.kurtosis_rotated for layer in one.layers)
        return before > 1 and abs(after) < _NORMAL, f"{before:.2f} before, {after:.2f} after"

    return on_all(models, test)


def _distortion(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        found = {bits: fmean(layer.distortion[bits] for layer in one.layers) for bits in _THEORY}
        near = all(abs(found[bits] / known - 1) < 0.15 for bits, known in _THEORY.items())
        return near, " / ".join(f"{value:.4f}" for value in found.values())

    return on_all(models, test)


def _norms(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        ratios = [layer.k_norm / layer.v_norm for layer in one.layers]
        shown = f"K norm over V norm {fmean(ratios):.1f} in the mean, {max(ratios):.0f} in the worst layer"
        return fmean(ratios) > 10 and max(ratios) > 100, shown

    return on_all(models, test)


def _zero_blocks(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        share = max(layer.zero_blocks for layer in one.layers)
        return share > 0, f"at most {share:.2%} of a layer's blocks are zero"

    return on_all(models, test)


def _attention_kl(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        raw, corrected = (
            fmean(layer.attention_kl[name] for layer in one.layers) for name in ("lm3-wide-rms", "lm3-wide")
        )
        return corrected < raw / 5, f"{raw:.4f} to {corrected:.4f} nats"

    return on_all(models, test)


def captured(judge: Callable[[Sequence[Evidence]], Verdict]) -> Callable[[Sequence[Evidence]], Verdict]:
    """Say so where no model was captured, instead of judging nothing."""

    def checked(models: Sequence[Evidence]) -> Verdict:
        kept = [one for one in models if one.layers]
        return judge(kept) if kept else undecided("no keys were captured")

    return checked


CLAIMS = (
    Claim(
        name="kurtosis",
        statement="The rotation makes the values of a block look normal.",
        published="excess kurtosis 50.98 before, -0.13 after",
        theory="mixing 32 values with equal weights; a normal block scaled to unit rms has -6/34",
        judge=captured(_kurtosis),
        capture=True,
    ),
    Claim(
        name="distortion-on-keys",
        statement="On real, rotated keys the distortion is that of theory.",
        published="0.118 / 0.0345 / 0.0095 at 2 / 3 / 4 bits",
        theory="equal to N(0,1) if the rotated values are normal",
        judge=captured(_distortion),
        capture=True,
    ),
    Claim(
        name="key-norms",
        statement="Keys are much longer than values.",
        published="21.8 times in the mean, 490 times in the worst layer (Qwen2.5-3B)",
        theory="none: a property of the model",
        judge=captured(_norms),
        capture=True,
    ),
    Claim(
        name="zero-blocks-in-caches",
        statement="Blocks of zeros occur in real caches and decode to noise without the fix.",
        published="empty blocks decoded into structured noise",
        theory="a cleared cache decodes to zero in any case, since d = 0",
        judge=captured(_zero_blocks),
        capture=True,
    ),
    Claim(
        name="norm-correction-attention",
        statement="Norm correction lowers the KL divergence of attention at 3 bits with one norm per head.",
        published="2.16 to 0.18 nats (Qwen3-8B)",
        theory="the rms scale shrinks a block by 1 - 0.0345/2, that is by 2 %: scores move little",
        judge=captured(_attention_kl),
        capture=True,
    ),
)
