"""Judges of published claims on synthetic evidence: both verdicts of each, and nothing judged on nothing."""

from __future__ import annotations

from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from tqforge.errors import ConfigError
from tqforge.lab import page, record
from tqforge.lab.claims import closed_form
from tqforge.lab.claims.claim import Evidence, Outcome, Verdict
from tqforge.lab.claims.registry import CLAIMS, needle_trials, trials
from tqforge.lab.codecs.registry import codec
from tqforge.lab.request import Answers, Capture, LayerFacts, Prompt, Scores, Trial

BY_NAME = {claim.name: claim for claim in CLAIMS}
PROMPTS = (Prompt(text="?", words=("ALPHA-1", "abcde2")),)
LAYER = LayerFacts(
    layer=0, k_norm=20.0, v_norm=1.0, kurtosis=40.0, kurtosis_rotated=-0.1,
    distortion={2: 0.118, 3: 0.0345, 4: 0.0095}, zero_blocks=0.0,
    attention_kl={"lm3-wide-rms": 1.0, "lm3-wide": 0.1},
)  # fmt: skip


def scores(text: str, kl: float, increase: float = 0.0) -> tuple[Trial, Scores]:
    trial = Trial.parse(text)
    nll = (2.0 + log(1 + increase),) * 4
    return trial, Scores(trial=trial, kl=(kl,) * 4, nll=nll, same_top=(True,) * 4, seconds=1)


def evidence(*found: tuple[Trial, Scores], **changes: object) -> Evidence:
    base = Evidence(
        model="m", family="llama", parameters=10**9, scores=dict(found), reference=(2.0,) * 4, prompts=PROMPTS,
        answers={}, capture=Capture(tokens=10, layers=(LAYER,)),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def judge(name: str, *models: Evidence) -> Verdict:
    return BY_NAME[name].judge(models)


def test_names_are_unique_and_every_trial_has_a_codec() -> None:
    assert len(BY_NAME) == len(CLAIMS)
    assert len(trials()) > 15
    for trial in (*trials(), *needle_trials()):
        assert codec(trial.k)
        assert codec(trial.v)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_nothing_is_decided_without_a_model_but_what_needs_none(claim: object) -> None:
    closed = claim in closed_form.CLAIMS
    found = claim.judge(())  # type: ignore[attr-defined]
    assert (found.outcome is not Outcome.UNDECIDED) == closed
    assert found.shown


@pytest.mark.parametrize("claim", closed_form.CLAIMS, ids=lambda claim: claim.name)
def test_what_needs_no_model_is_reproduced(claim: object) -> None:
    assert claim.judge(()).outcome is Outcome.REPRODUCED  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("neutral-3.5", [("tq3_0", 0.005)], [("tq3_0", 0.2)]),
        ("keys-before-values", [("lm4-norm/lm3-norm", 0.05), ("lm3-norm/lm4-norm", 0.2)],
         [("lm4-norm/lm3-norm", 0.2), ("lm3-norm/lm4-norm", 0.2)]),
        ("norm-correction-keys", [("lm3-wide-rms/f16", 1.0), ("lm3-wide/f16", 0.1)],
         [("lm3-wide-rms/f16", 0.1), ("lm3-wide/f16", 0.1)]),
        ("qjl-against-a-bit", [("lm4-qjl/lm4-wide", 0.2), ("lm5-wide/lm4-wide", 0.1)],
         [("lm4-qjl/lm4-wide", 0.1), ("lm5-wide/lm4-wide", 0.2)]),
        ("recent-window", [("lm3-norm", 0.2), ("lm3-norm+recent128", 0.19)],
         [("lm3-norm", 0.2), ("lm3-norm+recent128", 0.05)]),
        ("centring", [("tq3_0", 1.0), ("tq3_0+cal", 0.1)], [("tq3_0", 0.1), ("tq3_0+cal", 0.1)]),
        ("block-size",
         [("lm2-wide", 1.0), ("lm2-norm", 1.5), ("lm3-wide", 0.2), ("lm3-norm", 0.1), ("lm4-wide", 0.1),
          ("lm4-norm", 0.1)],
         [("lm2-wide", 1.0), ("lm2-norm", 0.5), ("lm3-wide", 0.2), ("lm3-norm", 0.1), ("lm4-wide", 0.1),
          ("lm4-norm", 0.1)]),
    ],
)  # fmt: skip
def test_claims_about_kl(name: str, good: list[tuple[str, float]], bad: list[tuple[str, float]]) -> None:
    assert judge(name, evidence(*(scores(*one) for one in good))).outcome is Outcome.REPRODUCED
    assert judge(name, evidence(*(scores(*one) for one in bad))).outcome is Outcome.REFUTED


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("k8v4", {"q8_0/lm4-norm": 0.002}, {"q8_0/lm4-norm": 0.05}),
        ("k4v3-is-k4v4", {"lm4-norm/lm3-norm": 0.031, "lm4-norm": 0.03}, {"lm4-norm/lm3-norm": 0.06, "lm4-norm": 0.03}),
        ("distortion-misleads", {"lm3-norm": 0.1}, {"lm3-norm": 0.01}),
        ("qjl-by-bits",
         {"lm2-wide": 0.3, "lm2-qjl/lm2-wide": 0.1, "lm3-wide": 0.1, "lm3-qjl/lm3-wide": 0.05, "lm4-wide": 0.01,
          "lm4-qjl/lm4-wide": 0.008},
         {"lm2-wide": 0.3, "lm2-qjl/lm2-wide": 0.4, "lm3-wide": 0.1, "lm3-qjl/lm3-wide": 0.05, "lm4-wide": 0.01,
          "lm4-qjl/lm4-wide": 0.008}),
        ("norm-correction-perplexity",
         {f"lm{bits}-wide{rule}": value for bits in (2, 3, 4) for rule, value in (("", 0.1), ("-rms", 0.2))},
         {f"lm{bits}-wide{rule}": value for bits in (2, 3, 4) for rule, value in (("", 0.2), ("-rms", 0.1))}),
    ],
)  # fmt: skip
def test_claims_about_perplexity(name: str, good: dict[str, float], bad: dict[str, float]) -> None:
    for increases, outcome in ((good, Outcome.REPRODUCED), (bad, Outcome.REFUTED)):
        one = evidence(*(scores(text, 0.1, value) for text, value in increases.items()))
        assert judge(name, one).outcome is outcome


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("kurtosis", {"kurtosis_rotated": 4.0}),
        ("distortion-on-keys", {"distortion": {2: 0.118, 3: 0.05, 4: 0.0095}}),
        ("norm-correction-attention", {"attention_kl": {"lm3-wide-rms": 0.1, "lm3-wide": 0.09}}),
    ],
)
def test_claims_about_captured_keys(name: str, changes: dict[str, object]) -> None:
    assert judge(name, evidence()).outcome is Outcome.REPRODUCED
    other = Capture(tokens=10, layers=(LAYER.model_copy(update=changes),))
    assert judge(name, evidence(capture=other)).outcome is Outcome.REFUTED


def test_key_norms_need_a_mean_and_a_worst_layer() -> None:
    assert judge("key-norms", evidence()).outcome is Outcome.REFUTED
    layers = (LAYER, LAYER.model_copy(update={"k_norm": 490.0}))
    assert judge("key-norms", evidence(capture=Capture(tokens=1, layers=layers))).outcome is Outcome.REPRODUCED


def test_zero_blocks_must_be_seen() -> None:
    assert judge("zero-blocks-in-caches", evidence()).outcome is Outcome.REFUTED
    some = Capture(tokens=1, layers=(LAYER.model_copy(update={"zero_blocks": 0.01}),))
    assert judge("zero-blocks-in-caches", evidence(capture=some)).outcome is Outcome.REPRODUCED


def answered(**texts: str) -> Evidence:
    names = {"f16": "f16", "four": "lm4-wide", "hybrid": "lm4-qjl/lm4-wide", "five": "lm5-wide/lm4-wide",
             "gaussian": "lm4-qjl-gaussian/lm4-wide", "raw": "lm3-wide-rms", "new": "lm3-wide"}  # fmt: skip
    return evidence(answers={Trial.parse(names[name]): (text,) for name, text in texts.items()})


GOOD, HALF, NONE = "It is ALPHA-1, key abcde2.", "It is ALPHA-1.", "I do not know."


@pytest.mark.parametrize(
    ("name", "side", "holds", "fails"),
    [("needle-4-bit", "four", NONE, HALF), ("needle-4-plus-1", "hybrid", GOOD, HALF),
     ("needle-5-bit", "five", GOOD, NONE), ("needle-gaussian", "gaussian", NONE, GOOD)],
)  # fmt: skip
def test_claims_about_needles(name: str, side: str, holds: str, fails: str) -> None:
    assert judge(name, answered(f16=GOOD, **{side: holds})).outcome is Outcome.REPRODUCED
    assert judge(name, answered(f16=GOOD, **{side: fails})).outcome is Outcome.REFUTED


def test_norm_correction_of_needles() -> None:
    assert judge("needle-norm-correction", answered(f16=GOOD, raw=NONE, new=GOOD)).outcome is Outcome.REPRODUCED
    assert judge("needle-norm-correction", answered(f16=GOOD, raw=GOOD, new=GOOD)).outcome is Outcome.REFUTED


def test_a_model_that_finds_nothing_with_f16_decides_nothing() -> None:
    found = judge("needle-4-bit", answered(f16=NONE, four=NONE))
    assert found.outcome is Outcome.UNDECIDED
    assert "f16" in found.shown


def test_models_that_disagree_refute_a_general_claim() -> None:
    found = judge("neutral-3.5", evidence(scores("tq3_0", 0.001)), evidence(scores("tq3_0", 0.3)))
    assert found.outcome is Outcome.REFUTED
    assert "disagree" in found.shown


def test_small_against_large_needs_one_family() -> None:
    small, large = evidence(scores("lm3-norm", 0.3)), evidence(scores("lm3-norm", 0.1), parameters=3 * 10**9)
    assert judge("small-models", small, large).outcome is Outcome.REPRODUCED
    assert judge("small-models", small, replace(large, family="qwen2")).outcome is Outcome.UNDECIDED
    even = replace(large, scores=small.scores)
    assert judge("small-models", small, even).outcome is Outcome.REFUTED


def lab_record() -> record.LabRecord:
    _, reference = scores("f16", 0.0)
    trial, one = scores("tq3_0", 0.2)
    model = record.ModelRecord(
        name="Model | A", file="a.gguf", sha256="0" * 64, architecture="llama", parameters=10**9, head_k=64, head_v=64,
        prompts=PROMPTS, reference=reference, scores=(one,), answers=(Answers(trial=trial, texts=(GOOD,), seconds=1),),
        capture=Capture(tokens=10, layers=(LAYER,)), seconds=3,
    )  # fmt: skip
    return record.LabRecord(
        tree="a" * 40, command="tqforge lab claims", date="2026-12-01", text_sha256="b" * 64, windows=((768, 256),),
        models=(model,),
    )  # fmt: skip


def test_a_record_survives_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    record.write(lab_record(), path)
    assert record.read(path) == lab_record()


@pytest.mark.parametrize("content", ["", "{}", '{"schema_id": "tqforge.lab/0"}'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "lab.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match="lab record"):
        record.read(path)
    with pytest.raises(ConfigError, match="Cannot read"):
        record.read(tmp_path / "none.json")


def test_the_page_shows_every_claim_it_is_given_and_every_codec() -> None:
    text = page.claims_page(lab_record(), [BY_NAME["neutral-3.5"], BY_NAME["codebook-distortion"]])
    assert "| `neutral-3.5` |" in text
    assert "refuted" in text
    assert "reproduced" in text
    assert "| tq3_0/tq3_0 | 3.50 | 0.2000" in text
    assert "## Model | A" in text


def test_bars_in_cells_are_escaped() -> None:
    assert page.table(("a",), [("x|y",)]).endswith("| x\\|y |")
