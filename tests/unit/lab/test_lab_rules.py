"""Trials, calibration, row selection and statistics of the lab, without a model."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tqforge.core import tq3_0
from tqforge.errors import CacheTypeError, LoadError
from tqforge.lab.child import describe, rewrite
from tqforge.lab.codecs.calibration import Calibration, Moments, scale
from tqforge.lab.codecs.codec import Codec
from tqforge.lab.request import RESULT, Answers, Scores, Trial

RNG = np.random.default_rng(11)


@pytest.mark.parametrize(
    ("text", "trial", "shown"),
    [
        ("tq3_0", Trial(k="tq3_0", v="tq3_0"), "tq3_0/tq3_0"),
        ("q8_0/lm3", Trial(k="q8_0", v="lm3"), "q8_0/lm3"),
        ("q4_0+real", Trial(k="q4_0", v="q4_0", real=True), "q4_0/q4_0+real"),
        ("lm3/lm3+cal", Trial(k="lm3", v="lm3", calibrated=True), "lm3/lm3+cal"),
        ("lm3+first4+recent128", Trial(k="lm3", v="lm3", first=4, recent=128), "lm3/lm3+first4+recent128"),
    ],
)
def test_trials_are_read_and_shown(text: str, trial: Trial, shown: str) -> None:
    assert Trial.parse(text) == trial
    assert str(trial) == shown
    assert Trial.parse(shown) == trial


@pytest.mark.parametrize("text", ["lm3+last4", "lm3+recent", "lm3+"])
def test_unknown_options_are_refused(text: str) -> None:
    with pytest.raises(CacheTypeError, match="option"):
        Trial.parse(text)


def test_results_survive_the_pipe() -> None:
    trial = Trial(k="lm3", v="lm4", calibrated=True)
    scores = Scores(trial=trial, kl=(0.1, 0.2), nll=(1.0, 2.0), same_top=(True, False), seconds=1.5)
    answers = Answers(trial=trial, texts=("a\nb",), seconds=2)
    for result in (scores, answers):
        assert RESULT.validate_json(result.model_dump_json()) == result
    broken = json.loads(scores.model_dump_json()) | {"kind": "else"}
    with pytest.raises(ValueError, match="kind"):
        RESULT.validate_python(broken)


def softmax(scores: np.ndarray) -> np.ndarray:
    wide = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(wide / wide.sum(axis=-1, keepdims=True))


def test_calibrated_keys_leave_attention_as_it_was() -> None:
    """The identity behind calibration: softmax(Q K^T) = softmax((Q / s) (s (K - c))^T)."""
    q, k = RNG.standard_normal((5, 16)), RNG.standard_normal((40, 16)) + 30
    c, s = k.mean(axis=0), np.exp(RNG.standard_normal(16))
    assert np.allclose(softmax(q @ k.T), softmax((q / s) @ (s * (k - c)).T), atol=1e-12)


def test_stored_and_seen_keys_are_inverse() -> None:
    one = Calibration(RNG.standard_normal((2, 8)).astype(np.float32), np.full((2, 8), 1.7, dtype=np.float32))
    rows = RNG.standard_normal((20, 16)).astype(np.float32)
    assert np.allclose(one.from_stored(one.to_stored(rows)), rows, atol=1e-5)
    assert not np.allclose(one.to_stored(rows), rows)


def test_calibration_removes_a_constant_offset() -> None:
    moments = Moments(head=64)
    rows = RNG.standard_normal((512, 128)).astype(np.float32)
    rows[:, 7] += 40
    moments.add_keys(np.arange(512), rows)
    moments.add_queries(RNG.standard_normal((512, 4, 64)).astype(np.float32))
    one, three = moments.calibrate(), Codec(bits=3, rotation="block")
    assert one.offset[0, 7] == pytest.approx(40, abs=0.2)
    plain = np.square(three.roundtrip(rows, 64) - rows).mean()
    calibrated = np.square(one.from_stored(three.roundtrip(one.to_stored(rows), 64)) - rows).mean()
    assert calibrated < plain / 5


def test_the_first_token_does_not_shift_the_offset() -> None:
    moments = Moments(head=32)
    rows = np.zeros((10, 32), dtype=np.float32)
    rows[0] = 1e6
    moments.add_keys(np.arange(10), rows)
    moments.add_queries(np.ones((10, 1, 32), dtype=np.float32))
    assert not moments.calibrate().offset.any()


def test_the_scale_is_tamed() -> None:
    """Channels that hardly vary would make the scale explode; a geometric mean of 1 keeps the size of the keys."""
    energy, variance = np.ones((1, 64)), np.ones((1, 64))
    variance[0, :8] = 0
    found = scale(energy, variance)
    assert found.max() <= 3
    assert found.min() >= np.float32(1 / 3)
    even = scale(np.full((1, 64), 7.0), np.full((1, 64), 0.2))
    assert np.allclose(even, 1)
    uneven = scale(np.ones((1, 2)), np.array([[1.0, 16.0]]))
    assert uneven[0, 0] / uneven[0, 1] == pytest.approx(2)


def test_neighbouring_cells_are_written_at_once() -> None:
    assert rewrite._runs(np.array([4, 5, 6])) == [(0, 3)]
    assert rewrite._runs(np.array([0, 1, 7, 8, 3])) == [(0, 2), (2, 4), (4, 5)]


@pytest.mark.parametrize(("name", "place"), [("cache_k_l0", ("k", 0)), ("cache_v_l31", ("v", 31))])
def test_cache_tensors_name_side_and_layer(name: str, place: tuple[str, int]) -> None:
    assert rewrite._place(name) == place


@pytest.mark.parametrize("name", ["cache_r_l0", "kq_mask", "cache_k_l"])
def test_other_tensors_are_refused(name: str) -> None:
    with pytest.raises(LoadError, match=name):
        rewrite._place(name)


def due(first: int = 0, recent: int = 0, batches: tuple[range, ...] = (range(4), range(4, 6))) -> list[list[int]]:
    """The cells that are replaced at each write."""
    one = rewrite.RowRewriter.__new__(rewrite.RowRewriter)
    one._first, one._recent, one._waiting = first, recent, {}
    found = []
    for batch in batches:
        cells = np.array(batch)
        now, rows = one._due("cache_k_l0", cells, cells[:, None].astype(np.float32))
        assert rows[:, 0].tolist() == now.tolist()
        found.append(now.tolist())
    return found


def test_rows_are_replaced_at_once_by_default() -> None:
    assert due() == [[0, 1, 2, 3], [4, 5]]


def test_the_first_tokens_stay_exact() -> None:
    assert due(first=2) == [[2, 3], [4, 5]]


def test_the_recent_tokens_wait() -> None:
    assert due(recent=3) == [[0], [1, 2]]
    assert due(recent=100) == [[], []]


def test_a_context_that_was_cut_back_forgets_what_waited() -> None:
    assert due(recent=2, batches=(range(6), range(2, 5))) == [[0, 1, 2, 3], [2]]


def test_kurtosis_of_known_distributions() -> None:
    signs = np.where(RNG.random((4000, 32)) < 0.5, -1, 1).astype(np.float32)
    assert describe.excess_kurtosis(signs) == pytest.approx(-2, abs=0.01)
    assert abs(describe.excess_kurtosis(RNG.standard_normal((20000, 32)).astype(np.float32))) < 0.3
    spikes = np.eye(32, dtype=np.float32)
    assert describe.excess_kurtosis(spikes) > 20
    assert describe.excess_kurtosis(tq3_0.rotate(spikes)) < 0


@pytest.mark.parametrize(("bits", "known"), [(2, 0.1175), (3, 0.0345), (4, 0.0095)])
def test_distortion_of_normal_values_follows_theory(bits: int, known: float) -> None:
    """A block's own rms is a slightly better scale than the true deviation."""
    assert describe.distortion(RNG.standard_normal((20000, 32)).astype(np.float32), bits) == pytest.approx(
        known, rel=0.08
    )


def test_attention_kl_sees_only_visible_keys() -> None:
    exact = RNG.standard_normal((3, 10)).astype(np.float32)
    assert describe.attention_kl(exact, exact, 7) == 0
    hidden = exact.copy()
    hidden[0, 8:] += 5  # query 0 sees the keys 0 to 7
    assert describe.attention_kl(exact, hidden, 7) == pytest.approx(0, abs=1e-12)
    visible = exact.copy()
    visible[0, 7] += 5
    assert describe.attention_kl(exact, visible, 7) > 0.01


def test_a_constant_offset_of_the_scores_is_no_loss() -> None:
    exact = RNG.standard_normal((4, 12)).astype(np.float32)
    assert describe.attention_kl(exact, exact + 3, 8) == pytest.approx(0, abs=1e-9)
