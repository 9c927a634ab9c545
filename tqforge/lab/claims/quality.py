"""Claims about KL divergence and perplexity of whole runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tqforge.lab.claims.claim import Claim, Evidence, Verdict, on_all, undecided, verdict

#: Below this KL in nats a cache is hard to tell from f16 on these models: about six times the noise of f16 itself.
_NEUTRAL = 0.02
#: Relative differences below this are noise in one run of 256 tokens.
_NOISE = 0.15
_FRAGILE = 1.5
#: Two runs of one codec differ by this much: rounding moves values over boundaries of the quantizer.
_LIKE = 0.3


def _less(one: float, other: float) -> bool:
    """Return whether `one` is below `other` by more than noise."""
    return one < (1 - _NOISE) * other


def _neutral(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        return one.kl("tq3_0") < _NEUTRAL, f"KL {one.kl('tq3_0'):.3f} at 3.5 bits"

    return on_all(models, test)


def _norm_perplexity(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        steps = {bits: (f"lm{bits}-wide-rms", f"lm{bits}-wide") for bits in (2, 3, 4)}
        pairs = {
            bits: (one.perplexity_increase(raw), one.perplexity_increase(new)) for bits, (raw, new) in steps.items()
        }
        shown = ", ".join(f"{bits} bits {raw:+.1%} to {new:+.1%}" for bits, (raw, new) in pairs.items())
        return all(new < raw for raw, new in pairs.values()), shown

    return on_all(models, test)


def _norm_keys_only(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        raw, new = one.kl("lm3-wide-rms/f16"), one.kl("lm3-wide/f16")
        return _less(new, raw), f"K alone at 3 bits: KL {raw:.3f} to {new:.3f}"

    return on_all(models, test)


def _keys_matter_more(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        better_k, better_v = one.kl("lm4-norm/lm3-norm"), one.kl("lm3-norm/lm4-norm")
        return _less(better_k, better_v), f"k4v3 KL {better_k:.3f}, k3v4 {better_v:.3f}"

    return on_all(models, test)


def _k8v4(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        increase = one.perplexity_increase("q8_0/lm4-norm")
        return abs(increase) < 0.01, f"k8v4 {increase:+.2%}, KL {one.kl('q8_0/lm4-norm'):.4f}"

    return on_all(models, test)


def _k4v3_k4v4(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        three, four = one.perplexity_increase("lm4-norm/lm3-norm"), one.perplexity_increase("lm4-norm")
        return abs(three - four) < 0.005, f"k4v3 {three:+.2%}, k4v4 {four:+.2%}"

    return on_all(models, test)


def _block_size(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        kl = {bits: (one.kl(f"lm{bits}-wide"), one.kl(f"lm{bits}-norm")) for bits in (2, 3, 4)}
        shown = ", ".join(f"{bits} bits KL {wide:.3f} to {block:.3f}" for bits, (wide, block) in kl.items())
        return kl[3][1] < kl[3][0] and kl[2][1] > kl[2][0], shown

    return on_all(models, test)


def _qjl_by_bits(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        gain = {
            bits: one.perplexity_increase(f"lm{bits}-wide")
            - one.perplexity_increase(f"lm{bits}-qjl/lm{bits}-wide")
            for bits in (2, 3, 4)
        }  # fmt: skip
        shown = ", ".join(f"{bits} bits {value:+.1%}" for bits, value in gain.items())
        return gain[2] > 0.01 and gain[3] > 0.01 and abs(gain[4]) < 0.01, shown

    return on_all(models, test)


def _qjl_against_bits(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        stage, control = one.kl("lm4-qjl/lm4-wide"), one.kl("lm5-wide/lm4-wide")
        return not _less(stage, control), f"4 + 1 bits KL {stage:.3f}, 5 bits {control:.3f}"

    return on_all(models, test)


def _recent(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        plain, exact = one.kl("lm3-norm"), one.kl("lm3-norm+recent128")
        return not _less(exact, plain), f"KL {plain:.3f} without, {exact:.3f} with 128 exact tokens"

    return on_all(models, test)


def _small_models(models: Sequence[Evidence]) -> Verdict:
    ordered = sorted(models, key=lambda one: (one.family, one.parameters))
    for family, group in groupby(ordered, key=lambda one: one.family):
        members = list(group)
        if len(members) > 1:
            small, large = members[0], members[-1]
            ratio = small.kl("lm3-norm") / large.kl("lm3-norm")
            shown = ", ".join(f"{one.parameters / 1e9:.1f}B KL {one.kl('lm3-norm'):.3f}" for one in (small, large))
            return verdict(ratio >= _FRAGILE, f"{family} at 3 bits: {shown}")
    return undecided("two models of one family are needed: add -m for both")


def _vector_distortion(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        increase = one.perplexity_increase("lm3-norm")
        return increase > 0.05, f"about 3 % squared error, perplexity {increase:+.1%}"

    return on_all(models, test)


def _centring(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        plain, calibrated = one.kl("tq3_0"), one.kl("tq3_0+cal")
        return _less(calibrated, plain), f"KL {plain:.3f} to {calibrated:.3f}"

    return on_all(models, test)


def _rotation(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        kl = {bits: (one.kl(f"lm{bits}-block"), one.kl(f"lm{bits}-head")) for bits in (3, 4)}
        shown = ", ".join(f"{bits} bits KL {block:.4f} and {head:.4f}" for bits, (block, head) in kl.items())
        return any(_less(block, head) for block, head in kl.values()), shown

    return on_all(models, test)


def _like_the_library(models: Sequence[Evidence]) -> Verdict:
    def test(one: Evidence) -> tuple[bool, str]:
        kl = {name: (one.kl(lab), one.kl(f"{name}+real")) for name, lab in (("tq3_0", "tq3_0"), ("q4_0", "q4_0-head"))}
        shown = ", ".join(f"{name} KL {lab:.4f} and {real:.4f}" for name, (lab, real) in kl.items())
        return all(abs(lab / real - 1) < _LIKE for lab, real in kl.values()), shown

    return on_all(models, test)


CLAIMS = (
    Claim(name="lab-is-the-library", statement="The lab's KL is that of the library's own cache types.",
          published="this project's method", theory="equal but for rounding, which the quantizer amplifies",
          judge=_like_the_library, trials=("tq3_0", "tq3_0+real", "q4_0-head", "q4_0+real")),
    Claim(name="rotation-in-the-type", statement="A rotation inside the type beats that of the graph.",
          published="open", theory="both are orthonormal; 32 values mix less than 64 or 128", judge=_rotation,
          trials=tuple(f"lm{bits}-{kind}" for bits in (3, 4) for kind in ("block", "head"))),
    Claim(name="neutral-3.5", statement="A cache of 3.5 bits per value is quality-neutral.",
          published="neutral, at least 4.5 times smaller", theory="none for whole models", judge=_neutral,
          trials=("tq3_0",)),
    Claim(name="norm-correction-perplexity", statement="Norm correction lowers perplexity (one norm per head).",
          published="+13.1 to +10.3 % (3 bits), +4.4 to +3.8 % (4 bits), +98 to +55 % (2 bits)",
          theory="the rms scale shrinks rows by 1.7, 0.5 and 6 %", judge=_norm_perplexity,
          trials=tuple(f"lm{bits}-wide{rule}" for bits in (2, 3, 4) for rule in ("", "-rms"))),
    Claim(name="norm-correction-keys", statement="Norm correction of the keys alone repairs a 3-bit cache.",
          published="needle from failing to right on Metal, changed together with zero blocks",
          theory="shorter keys flatten attention by 2 %", judge=_norm_keys_only,
          trials=("lm3-wide-rms/f16", "lm3-wide/f16")),
    Claim(name="keys-before-values", statement="A bit is worth more in keys than in values.",
          published="k4v3 +4.4 %, k3v4 +9.4 %", theory="errors of keys pass through exp", judge=_keys_matter_more,
          trials=("lm4-norm/lm3-norm", "lm3-norm/lm4-norm")),
    Claim(name="k8v4", statement="8-bit keys with 4-bit values cost almost nothing.",
          published="+0.2 to +0.3 %", theory="none", judge=_k8v4, trials=("q8_0/lm4-norm",)),
    Claim(name="k4v3-is-k4v4", statement="At block 32, 3-bit values are as good as 4-bit ones beside 4-bit keys.",
          published="equal to two decimals", theory="keys dominate", judge=_k4v3_k4v4,
          trials=("lm4-norm/lm3-norm", "lm4-norm")),
    Claim(name="block-size", statement="One norm per 32 values, not per head, helps 3 bits and hurts 2 bits.",
          published="+10.3 to +6.3 %; +55 to +69 %", theory="smaller blocks follow the energy at 16/32 bits more",
          judge=_block_size, trials=tuple(f"lm{bits}-{kind}" for bits in (2, 3, 4) for kind in ("wide", "norm"))),
    Claim(name="qjl-by-bits", statement="A QJL stage on keys buys much at 2 and 3 bits and nothing at 4.",
          published="1 to 17 points at 2 to 3 bits, under one at 4", theory="it removes 43 % of the residual's energy",
          judge=_qjl_by_bits,
          trials=tuple(f"lm{bits}-{kind}" for bits in (2, 3, 4) for kind in ("wide", f"qjl/lm{bits}-wide"))),
    Claim(name="qjl-against-a-bit", statement="Five bits without QJL do as well as 4 bits and a QJL bit.",
          published="open", theory="a fifth bit removes 74 % of the error, QJL 43 %", judge=_qjl_against_bits,
          trials=("lm4-qjl/lm4-wide", "lm5-wide/lm4-wide")),
    Claim(name="recent-window", statement="Keeping the newest 128 tokens exact changes nothing beyond noise.",
          published="noise; others report the largest single gain", theory="most attention is local",
          judge=_recent, trials=("lm3-norm", "lm3-norm+recent128")),
    Claim(name="small-models", statement="Small models are more fragile than large ones of the same family.",
          published="3 bits cost 10 % at 8B, 34 % at 1B", theory="none", judge=_small_models, trials=("lm3-norm",)),
    Claim(name="distortion-misleads", statement="A small squared error does not mean a small loss.",
          published="3 % error, 10 % perplexity", theory="attention weighs errors unevenly", judge=_vector_distortion,
          trials=("lm3-norm",)),
    Claim(name="centring", statement="Removing offsets and scaling channels of keys explains better 3-bit results.",
          published="+5.5 % at 3 bits with asymmetric centring", theory="softmax ignores what all keys share",
          judge=_centring, trials=("tq3_0", "tq3_0+cal")),
)  # fmt: skip
