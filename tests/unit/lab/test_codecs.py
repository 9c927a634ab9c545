"""The lab's codecs: known distortions, exact bits, and planted errors that would go unnoticed otherwise."""

from __future__ import annotations

from dataclasses import replace

import gguf
import numpy as np
import pytest

from tqforge.core import tq3_0
from tqforge.errors import CacheTypeError
from tqforge.lab.codecs import qjl, rotation
from tqforge.lab.codecs.codebook import distortion, lloyd_max
from tqforge.lab.codecs.codec import Codec
from tqforge.lab.codecs.registry import CODECS, codec

HEAD = 64
ROWS = np.random.default_rng(7).standard_normal((4000, 2 * HEAD)).astype(np.float32)


def error(one: Codec, rows: np.ndarray = ROWS, head: int = HEAD) -> float:
    held = one.roundtrip(rows, head)
    return float(np.square(rows - held).sum() / np.square(rows).sum())


@pytest.mark.parametrize(("bits", "known"), [(1, 0.3634), (2, 0.1175), (3, 0.03454), (4, 0.009497), (5, 0.002499)])
def test_codebooks_reach_the_known_optimum(bits: int, known: float) -> None:
    assert distortion(bits) == pytest.approx(known, rel=3e-3)


def test_codebooks_are_fixed_points() -> None:
    """Every boundary is the middle of its centroids, and the 3-bit centroids are those of tq3_0."""
    centroids, boundaries = lloyd_max(3)
    assert np.allclose(boundaries, (centroids[1:] + centroids[:-1]) / 2)
    assert np.abs(centroids - tq3_0.CENTROIDS).max() < 1e-4
    assert np.allclose(centroids, -centroids[::-1])


@pytest.mark.parametrize("kind", rotation.ROTATIONS[1:])
@pytest.mark.parametrize("size", [32, 64, 96, 128, 256])
def test_rotations_are_orthonormal(kind: rotation.Rotation, size: int) -> None:
    matrix = rotation.matrix(kind, size)
    assert matrix is not None
    assert np.abs(matrix @ matrix.T - np.eye(size)).max() < 1e-5


def test_the_block_rotation_is_that_of_tq3_0() -> None:
    matrix = rotation.matrix("block", 64)
    assert matrix is not None
    rows = ROWS[:, :64]
    assert np.abs(rows @ matrix.T - tq3_0.rotate(rows.reshape(-1, 32)).reshape(rows.shape)).max() < 1e-5


def test_the_graph_rotates_v_by_64_and_k_by_the_whole_power_of_two() -> None:
    assert [rotation.graph_size(size, "k") for size in (64, 96, 128, 192, 256)] == [64, 0, 128, 64, 256]
    assert [rotation.graph_size(size, "v") for size in (64, 96, 128, 192, 256)] == [64, 0, 64, 64, 64]


@pytest.mark.parametrize(
    ("name", "bits"),
    [("f16", 16.0), ("q8_0", 8.5), ("q5_1", 6.0), ("q5_0", 5.5), ("q4_0", 4.5), ("tq3_0", 3.5), ("lm3-block", 3.5),
     ("lm4-head", 4.5), ("lm4-wide", 4.25), ("lm4-qjl", 5.5)],
)  # fmt: skip
def test_bits_count_all_side_information(name: str, bits: float) -> None:
    assert codec(name).bits_per_value(HEAD) == bits


@pytest.mark.parametrize("name", ["q8_0", "q5_1", "q5_0", "q4_1", "q4_0"])
def test_ggml_types_are_those_of_gguf(name: str) -> None:
    kind = gguf.GGMLQuantizationType[name.upper()]
    wanted = gguf.dequantize(gguf.quantize(ROWS, kind), kind)
    assert np.array_equal(codec(name).roundtrip(ROWS, HEAD), wanted)


def test_tq3_0_is_the_reference() -> None:
    assert np.array_equal(codec("tq3_0").roundtrip(ROWS, HEAD), tq3_0.roundtrip(ROWS))


def test_f16_leaves_the_values() -> None:
    assert np.array_equal(codec("f16").roundtrip(ROWS, HEAD), ROWS)


def test_a_composed_tq3_0_is_as_good_as_the_type() -> None:
    assert error(codec("lm3-block")) == pytest.approx(error(codec("tq3_0")), rel=0.01)


@pytest.mark.parametrize("name", [name for name in CODECS if name != "f16" and "gaussian" not in name])
def test_every_codec_keeps_the_shape_and_loses_something(name: str) -> None:
    held = codec(name).roundtrip(ROWS[:50].reshape(5, 10, 128), HEAD)
    assert held.shape == (5, 10, 128)
    assert held.dtype == np.float32
    assert 0 < error(codec(name)) < 0.13


def test_a_rotation_that_is_not_undone_would_be_seen() -> None:
    """The error of a forgotten inverse is of the size of the values themselves."""
    one = codec("lm4-head")
    turn = rotation.matrix("head", HEAD)
    assert turn is not None
    wrong = (ROWS.reshape(-1, HEAD) @ turn.T).reshape(ROWS.shape)
    assert np.square(ROWS - wrong).sum() / np.square(ROWS).sum() > 1
    assert error(one) < 0.01


def test_rotation_spreads_an_outlier_channel() -> None:
    rows = ROWS.copy()
    rows[:, 5::HEAD] += 30
    held = {name: codec(name).roundtrip(rows, HEAD) for name in ("lm4", "lm4-head")}
    errors = {name: float(np.square(rows - value).mean()) for name, value in held.items()}
    assert errors["lm4-head"] < errors["lm4"]


def test_scale_rules_differ_as_they_should() -> None:
    """Least squares has the least error at given codes; the norm rule keeps the norm; the rms keeps neither."""
    base = Codec(bits=3, rotation="block", scale="rms")
    by = {rule: replace(base, scale=rule) for rule in ("rms", "norm", "least-squares", "search")}
    assert error(by["least-squares"]) < error(by["norm"]) < error(by["rms"])
    assert error(by["search"]) < error(by["norm"])
    blocks = ROWS.reshape(-1, 32)
    norms = np.linalg.norm(by["norm"].roundtrip(ROWS, HEAD).reshape(-1, 32), axis=1)
    assert np.abs(norms / np.linalg.norm(blocks, axis=1) - 1).max() < 1e-3


@pytest.mark.parametrize(
    ("kind", "damping", "energy", "left"),
    [("orthogonal", 1.0, np.pi / 2, np.pi / 2 - 1), ("orthogonal", 2 / np.pi, 2 / np.pi, 1 - 2 / np.pi),
     ("orthogonal", 0.7, 0.49 * np.pi / 2, 0.49 * np.pi / 2 - 0.4), ("gaussian", 1.0, np.pi / 2 + 1, np.pi / 2)],
)  # fmt: skip
def test_qjl_has_its_closed_forms(kind: qjl.Projection, damping: float, energy: float, left: float) -> None:
    """Energy of the estimate and of what it leaves, over the energy of the residual (large heads)."""
    rows = np.random.default_rng(3).standard_normal((3000, 256)).astype(np.float32)
    estimate = qjl.Residual(projection=kind, damping=damping).roundtrip(rows)
    total = np.square(rows).sum()
    assert np.square(estimate).sum() / total == pytest.approx(energy, rel=0.02)
    assert np.square(rows - estimate).sum() / total == pytest.approx(left, rel=0.05)


def test_a_qjl_scale_wrong_by_the_root_of_the_size_would_be_seen() -> None:
    rows = np.random.default_rng(4).standard_normal((500, 128)).astype(np.float32)
    right = qjl.Residual().roundtrip(rows)
    assert np.square(rows - right * np.sqrt(128)).sum() > 100 * np.square(rows - right).sum()


def test_the_residual_stage_is_unbiased_for_scalar_products() -> None:
    rng = np.random.default_rng(5)
    rows, query = rng.standard_normal((20000, 64)).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    estimate = qjl.Residual(projection="orthogonal").roundtrip(rows)
    slope = float((estimate @ query) @ (rows @ query) / np.square(rows @ query).sum())
    assert slope == pytest.approx(1, abs=0.03)


def test_unknown_codecs_are_refused() -> None:
    with pytest.raises(CacheTypeError, match="q9_0") as caught:
        codec("q9_0")
    assert "tqforge lab list" in caught.value.remedy
