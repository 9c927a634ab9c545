"""Claims about needle retrieval."""

from __future__ import annotations

from collections.abc import Sequence

from tqforge.lab.claims.claim import Claim, Evidence, Verdict, on_all, undecided

_LEAST_CONTROL = 0.5
_FOUR, _HYBRID, _GAUSSIAN, _FIVE = "lm4-wide", "lm4-qjl/lm4-wide", "lm4-qjl-gaussian/lm4-wide", "lm5-wide/lm4-wide"


def _able(models: Sequence[Evidence]) -> list[Evidence]:
    """Return the models that find the needle with an f16 cache; the others cannot decide."""
    return [one for one in models if one.answers and one.found("f16") >= _LEAST_CONTROL]


def _retrieval(models: Sequence[Evidence], *, below: str = "", above: str = "") -> Verdict:
    """Judge whether `below` finds nothing, or `above` as much as f16."""
    able = _able(models)
    if not able:
        return undecided("no model finds the needles with an f16 cache; a larger one would decide")

    def test(one: Evidence) -> tuple[bool, str]:
        name, control = below or above, one.found("f16")
        found = one.found(name)
        return (found == 0 if below else found >= 0.75 * control), f"{found:.2f} (f16 {control:.2f})"

    return on_all(able, test)


def _norm_correction(models: Sequence[Evidence]) -> Verdict:
    able = _able(models)
    if not able:
        return undecided("no model finds the needles with an f16 cache; a larger one would decide")

    def test(one: Evidence) -> tuple[bool, str]:
        raw, new = one.found("lm3-wide-rms"), one.found("lm3-wide")
        return new > raw, f"{raw:.2f} to {new:.2f} (f16 {one.found('f16'):.2f})"

    return on_all(able, test)


CLAIMS = (
    Claim(name="needle-4-bit", statement="Keys and values of 4 bits without QJL retrieve nothing.",
          published="0 % at 2K to 16K", theory="none", judge=lambda models: _retrieval(models, below=_FOUR),
          needles=("f16", _FOUR)),
    Claim(name="needle-4-plus-1", statement="Keys of 4 + 1 QJL bits restore retrieval.",
          published=".5 / 1 / 1 / 1, later .5 / .5 / .5 / 1", theory="none",
          judge=lambda models: _retrieval(models, above=_HYBRID), needles=("f16", _HYBRID)),
    Claim(name="needle-5-bit", statement="Five plain bits retrieve as well as 4 + 1.", published="open",
          theory="less error at the same bits", judge=lambda models: _retrieval(models, above=_FIVE),
          needles=("f16", _FIVE)),
    Claim(name="needle-gaussian", statement="The same bits with a Gaussian projection retrieve nothing.",
          published="0 % at every length", theory="it leaves 1.571 of the residual: worse than no stage",
          judge=lambda models: _retrieval(models, below=_GAUSSIAN), needles=("f16", _GAUSSIAN)),
    Claim(name="needle-norm-correction", statement="Norm correction turns failing needles into found ones at 3 bits.",
          published="from failing to right", theory="scores move by 2 %", judge=_norm_correction,
          needles=("f16", "lm3-wide-rms", "lm3-wide")),
)  # fmt: skip
