from __future__ import annotations

import numpy as np
import pytest
from codec_math import relative_error, unrotate
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tqforge.core import tq3_0

BLOCKS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.just(32)),
    elements=st.floats(-1e4, 1e4, width=32),
)


def normal(count: int) -> tq3_0.Floats:
    return np.random.default_rng(7).standard_normal((count, 32)).astype(np.float32)


def test_tables_are_the_published_ones() -> None:
    assert tq3_0.BLOCK_BYTES == 2 + 32 * 3 // 8
    assert 8 * tq3_0.BLOCK_BYTES / tq3_0.BLOCK == 3.5
    assert np.array_equal(tq3_0.CENTROIDS, -tq3_0.CENTROIDS[::-1])
    assert tq3_0.SIGNS[:8].tolist() == [1, -1, 1, -1, 1, 1, -1, 1]


def test_distortion_on_the_normal_distribution() -> None:
    samples = np.random.default_rng(1).standard_normal(2_000_000).astype(np.float32)
    assert tq3_0.codebook_distortion(samples) == pytest.approx(tq3_0.DISTORTION, rel=0.01)


def test_an_index_straddles_bytes_where_it_should() -> None:
    codes = np.zeros((1, 32), dtype=np.uint8)
    codes[0, 2], codes[0, 5] = 7, 7
    assert tq3_0.pack(codes)[0, :3].tolist() == [0b11000000, 0b10000001, 0b00000011]


@given(hnp.arrays(np.uint8, (3, 32), elements=st.integers(0, 7)))
def test_pack_and_unpack_are_inverse(codes: tq3_0.Codes) -> None:
    assert np.array_equal(tq3_0.unpack(tq3_0.pack(codes)), codes)


@given(BLOCKS)
@settings(deadline=None)
def test_rotation_is_orthonormal(rows: tq3_0.Floats) -> None:
    back = unrotate(tq3_0.rotate(rows))
    assert np.allclose(back, rows, atol=1e-5 * max(1.0, float(np.abs(rows).max())))


@given(BLOCKS)
@settings(deadline=None)
def test_norm_is_restored_to_fp16_precision(rows: tq3_0.Floats) -> None:
    norms = np.sqrt(tq3_0.sum_of_squares(rows))
    kept = (norms > 1e-2) & (norms < 1e5)
    decoded = np.sqrt(tq3_0.sum_of_squares(tq3_0.roundtrip(rows)))
    assert np.allclose(decoded[kept], norms[kept], rtol=6e-4)


@given(BLOCKS)
@settings(deadline=None)
def test_codes_do_not_depend_on_powers_of_two(rows: tq3_0.Floats) -> None:
    kept = rows[tq3_0.sum_of_squares(rows) > 1e-6]
    assert np.array_equal(tq3_0.encode(kept)[:, 2:], tq3_0.encode(kept * np.float32(4))[:, 2:])


def test_zero_block_before_and_after() -> None:
    zero = np.zeros((1, 32), dtype=np.float32)
    spike = tq3_0.decode(tq3_0.encode(zero, tq3_0.RAW))[0]
    assert spike[0] == pytest.approx(-1.3865, abs=1e-4)
    assert np.allclose(spike[1:], 0)
    assert not tq3_0.encode(zero).any()
    assert not tq3_0.decode(tq3_0.encode(zero)).any()


def test_raw_scale_is_the_rms_and_one_hot_falls_short() -> None:
    one_hot = np.zeros((1, 32), dtype=np.float32)
    one_hot[0, 5] = 3.0
    raw, final = (tq3_0.decode(tq3_0.encode(one_hot, variant))[0, 5] for variant in (tq3_0.RAW, tq3_0.FINAL))
    assert raw == pytest.approx(3.0 * 0.756, rel=2e-3)
    assert final == pytest.approx(3.0, rel=1e-3)


def test_worst_case_is_parallel_to_the_signs() -> None:
    rows = tq3_0.SIGNS[None, :].copy()
    decoded = tq3_0.roundtrip(rows)
    cosine = float((rows * decoded).sum() / np.sqrt((rows**2).sum() * (decoded**2).sum()))
    assert cosine == pytest.approx(0.845, abs=0.002)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_a_block_that_cannot_be_stored_decodes_to_nan_and_leaves_its_neighbours(bad: float) -> None:
    rows = normal(3)
    rows[1, 4] = bad
    packed = tq3_0.encode(rows)
    assert packed[1].tolist() == [0x00, 0x7E] + [0] * 12
    decoded = tq3_0.decode(packed)
    assert np.isnan(decoded[1]).all()
    assert np.isfinite(decoded[[0, 2]]).all()


def test_tiny_blocks_flush_to_zero() -> None:
    assert not tq3_0.decode(tq3_0.encode(np.full((1, 32), 1e-12, dtype=np.float32))).any()
    assert not tq3_0.decode(tq3_0.encode(np.full((1, 32), 1e-9, dtype=np.float32))).any()


def test_the_first_variants_differ_in_the_scale_alone() -> None:
    rows = normal(64)
    raw, corrected, defined, final = (tq3_0.encode(rows, variant) for variant in tq3_0.VARIANTS)
    assert np.array_equal(raw[:, 2:], corrected[:, 2:])
    assert np.array_equal(corrected, defined)
    assert not np.array_equal(raw[:, :2], corrected[:, :2])
    assert not np.array_equal(final[:, 2:], defined[:, 2:])


def test_the_search_lowers_the_error_of_normal_blocks_by_a_sixth() -> None:
    rows = normal(20_000)
    before, after = (relative_error(rows, tq3_0.roundtrip(rows, variant)) for variant in (tq3_0.DEFINED, tq3_0.FINAL))
    assert before == pytest.approx(0.0310, abs=2e-4)
    assert after == pytest.approx(0.0259, abs=2e-4)


def test_the_search_finds_the_best_of_its_scales() -> None:
    rows = normal(500) ** 3
    rotated = tq3_0.rotate(rows).astype(np.float64)
    rms = np.sqrt(np.square(rotated).mean(axis=1))

    def angle(centroids: np.ndarray) -> np.ndarray:
        dot, square = (rotated * centroids).sum(axis=1), np.square(centroids).sum(axis=1)
        found: np.ndarray = dot**2 / (square * np.square(rotated).sum(axis=1))
        return found

    def possible(scale: float) -> np.ndarray:  # values at a boundary may go to either side
        near = [rotated / (rms * scale * step)[:, None] for step in (1 - 1 / 1024, 1, 1 + 1 / 1024)]
        angles = [angle(tq3_0.CENTROIDS[tq3_0.code_of(rows.astype(np.float32))]) for rows in near]
        found: np.ndarray = np.min(angles, axis=0)
        return found

    found = angle(tq3_0.CENTROIDS[tq3_0.unpack(tq3_0.encode(rows)[:, 2:])])
    assert (found > np.max([possible(scale) for scale in tq3_0.SCALES], axis=0) - 3e-4).all()


def test_whole_blocks_only() -> None:
    with pytest.raises(ValueError, match="whole blocks"):
        tq3_0.encode(np.zeros(33, dtype=np.float32))
