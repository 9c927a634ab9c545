"""The lab on the real library: its codecs against the library's own cache types, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
from native_library import Native

from tqforge.adapters import gguf_io
from tqforge.errors import CrashError
from tqforge.lab import run
from tqforge.lab.request import Answers, Capture, Prompt, Request, Scores, Trial
from tqforge.verify import corpus


def measured(native: Native, folder: Path, *trials: str, **more: object) -> list[Scores | Answers | Capture]:
    facts, text = gguf_io.read(native.model), corpus.quality().content
    setup = run.Setup(library=native.library, bindings=native.bindings, folder=folder, threads=1)
    request = Request.model_validate(
        {"library": native.library, "bindings": native.bindings, "model": native.model, "scratch": folder,
         "head_k": facts.head_k, "head_v": facts.head_v, "text": text, "windows": ((192, 96),),
         "calibration": text[-1500:], "threads": 1, "trials": tuple(Trial.parse(one) for one in trials), **more}
    )  # fmt: skip
    return run._child(setup, request, lambda _: None)


def kl(native: Native, folder: Path, *trials: str) -> dict[str, float]:
    """Mean KL by trial; the first result is the f16 reference."""
    reference, *found = measured(native, folder, *trials)
    assert isinstance(reference, Scores)
    assert set(reference.kl) == {0.0}
    return {str(one.trial): fmean(one.kl) for one in found if isinstance(one, Scores)}


def test_the_lab_is_as_far_from_f16_as_the_library(native: Native, tmp_path: Path) -> None:
    """Rounding moves values over boundaries of the quantizer: equal within a few tenths, not to the bit."""
    found = kl(native, tmp_path, "tq3_0", "tq3_0+real", "q4_0-head", "q4_0+real", "f16")
    assert found["f16/f16"] < 0.001
    assert found["tq3_0/tq3_0"] == pytest.approx(found["tq3_0/tq3_0+real"], rel=0.4)
    assert found["q4_0-head/q4_0-head"] == pytest.approx(found["q4_0/q4_0+real"], rel=0.4)
    assert found["q4_0/q4_0+real"] < found["tq3_0/tq3_0+real"] / 2


def test_calibrated_keys_and_exact_windows_lower_the_kl(native: Native, tmp_path: Path) -> None:
    found = kl(native, tmp_path, "lm3-block", "lm3-block+cal", "lm3-block+recent128", "lm2-block")
    plain = found["lm3-block/lm3-block"]
    assert found["lm3-block/lm3-block+cal"] < plain
    assert found["lm3-block/lm3-block+recent128"] < plain / 2
    assert found["lm2-block/lm2-block"] > plain


def test_keys_are_described_layer_by_layer(native: Native, tmp_path: Path) -> None:
    (capture,) = measured(native, tmp_path, capture=True)
    assert isinstance(capture, Capture)
    assert len(capture.layers) == gguf_io.read(native.model).layers
    assert capture.tokens > 200
    for layer in capture.layers:
        assert layer.k_norm > 0
        assert 0.08 < layer.distortion[2] < 0.13
        assert layer.attention_kl["tq3_0"] > layer.attention_kl["q4_0-head"] > 0


def test_answers_come_from_the_compressed_cache(native: Native, tmp_path: Path) -> None:
    prompt = Prompt(text="The capital of France is", words=("Paris", "France"))
    trials = tuple(Trial.parse(one) for one in ("f16", "lm2-rms"))
    exact, lossy = measured(native, tmp_path, prompts=(prompt,), prompt_trials=trials)
    assert isinstance(exact, Answers)
    assert isinstance(lossy, Answers)
    assert exact.texts != lossy.texts


def test_a_child_that_fails_names_its_reason(native: Native, tmp_path: Path) -> None:
    with pytest.raises(CrashError, match=r"exit status 1.*Unknown codec 'q9_9'"):
        measured(native, tmp_path, "q9_9")
