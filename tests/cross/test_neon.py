"""The NEON paths of tq3_0 against the NumPy reference and the plain C code, with and without dot product instructions.

Inputs lie before a page that cannot be read: a load beyond a row kills the program.
"""

from __future__ import annotations

import math
import signal
from pathlib import Path

import numpy as np
import pytest
from codec_math import unrotate
from crosstools import ARCHITECTURES, WITHOUT_DOTPROD, Machine

from tqforge.core import tq3_0
from tqforge.core.tq3_0 import Floats, Packed

#: |error| of a dot product over |q| |k|. Centroids in 8 bits are off by 0.11 % rms; their worst sum stays below this.
TABLE_BOUND = 2e-3
#: Only the order of a few float additions differs: the sums inside a block are integers.
ORDER_BOUND = 2e-6
ROWS = (32, 64, 96, 128, 288)


def special() -> Floats:
    """One-hot, constant and sign-aligned blocks from zero to what overflows, and blocks with NaN and Inf."""
    rng = np.random.default_rng(5)
    sizes = [0.0, 1e-45, 1e-40, 1e-20, 1.7e-11, 2e-11, 1e-9, 3e-8, 1.0, 6e4, 65504, 65519, 65520, 3e38]
    sizes = [s for size in sizes for s in (size, -size)] + [math.inf, -math.inf, math.nan]
    one: np.ndarray = unrotate(np.eye(32, dtype=np.float32))[:1]
    shapes: list[np.ndarray] = [np.eye(32), np.ones((1, 32)), tq3_0.SIGNS[None], one]
    with np.errstate(invalid="ignore", over="ignore"):
        blocks = [np.where(shape == 0, 0, shape * size) for shape in shapes for size in sizes]
    broken = rng.standard_normal((96, 32))
    broken[np.arange(96), np.arange(96) % 32] = np.repeat([math.nan, math.inf, -math.inf], 32)
    return np.concatenate([*blocks, broken]).astype(np.float32)


def drawn() -> Floats:
    """Blocks of several distributions and scales, any bit pattern among them."""
    rng = np.random.default_rng(7)
    scale = 10.0 ** rng.uniform(-12, 5, (4000, 1))
    kinds = [
        rng.standard_normal((4000, 32)) * scale,
        rng.uniform(-1, 1, (4000, 32)) * scale,
        rng.standard_normal((4000, 32)) + 20,
        rng.standard_normal((4000, 32)) ** 5,
        np.round(rng.standard_normal((4000, 32)) * 2) / 2,
    ]
    bits = rng.integers(0, 2**32, (4000, 32), dtype=np.uint32).view(np.float32)
    return np.concatenate([*(kind.astype(np.float32) for kind in kinds), bits])


def equal_blocks(found: Packed, wanted: Packed) -> None:
    """Raises AssertionError with the first block that differs."""
    rows, others = found.reshape(-1, tq3_0.BLOCK_BYTES), wanted.reshape(-1, tq3_0.BLOCK_BYTES)
    assert rows.shape == others.shape
    differ = np.flatnonzero((rows != others).any(axis=1))
    assert not len(differ), f"{len(differ)} of {len(rows)} blocks differ; {differ[0]}: {rows[differ[0]].tobytes()!r}"


@pytest.mark.parametrize("blocks", [special(), drawn()], ids=["special", "drawn"])
@pytest.mark.parametrize("kernel", ["encode", "encode-plain", "encode-ref"])
def test_every_encoder_gives_the_bytes_of_the_reference(
    machine: Machine, kernel: str, blocks: Floats, tmp_path: Path
) -> None:
    equal_blocks(machine.kernel(kernel, tq3_0.BLOCK, blocks, scratch=tmp_path), tq3_0.encode(blocks))


def query(machine: Machine, values: Floats, scratch: Path) -> tuple[Packed, Floats]:
    """The rotated query as the library stores it, and the values that it stands for."""
    packed = machine.kernel("query", values.shape[1], values, scratch=scratch)
    blocks = packed.reshape(-1, 34)
    scale = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    return packed, (scale * blocks[:, 2:].view(np.int8)).reshape(values.shape)


@pytest.mark.parametrize("n", ROWS)
def test_the_query_is_rotated_and_in_eight_bits(machine: Machine, n: int, tmp_path: Path) -> None:
    values = np.random.default_rng(n).standard_normal((200, n)).astype(np.float32)
    _, stored = query(machine, values, tmp_path)
    wanted = tq3_0.rotate(tq3_0.blocks_of(values))
    step = np.abs(wanted).max(axis=1, keepdims=True) / 127
    rounded = 0.5 + 127 * 2.0**-11  # to whole steps, and the step itself to fp16
    assert (np.abs(tq3_0.blocks_of(stored) - wanted) <= 1.001 * rounded * step).all()


@pytest.mark.parametrize("n", ROWS)
def test_a_dot_product_is_that_of_the_decoded_rows(machine: Machine, n: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(n)
    keys = tq3_0.encode(rng.standard_normal((400, n)).astype(np.float32))
    packed, stored = query(machine, rng.standard_normal((400, n)).astype(np.float32), tmp_path)
    rotated = tq3_0.rotate(tq3_0.decode(keys)).reshape(400, n).astype(np.float64)
    wanted = (rotated * stored).sum(axis=1)
    size = np.linalg.norm(rotated, axis=1) * np.linalg.norm(stored, axis=1)
    dot, plain = (
        machine.kernel(name, n, keys, packed, scratch=tmp_path).view(np.float32) for name in ("dot", "dot-plain")
    )
    assert (np.abs(dot - wanted) / size).max() < TABLE_BOUND
    assert (np.abs(dot - plain) / size).max() < ORDER_BOUND


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("rows", [1, 7, 32])
def test_rows_are_added_up_in_the_rotated_domain(machine: Machine, n: int, rows: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(n + rows)
    values = tq3_0.encode(rng.standard_normal((rows, n)).astype(np.float32))
    weights = rng.standard_normal(rows).astype(np.float32)
    weights[rows // 2] = 0 if rows > 1 else 1
    start = rng.standard_normal(n).astype(np.float32)
    rotated = tq3_0.rotate(tq3_0.decode(values)).reshape(rows, n).astype(np.float64)
    wanted = start + weights @ rotated
    size = np.abs(start) + np.abs(weights) @ np.abs(rotated)
    for name in ("mad", "mad-plain"):
        found = machine.kernel(name, n, values, weights, start, scratch=tmp_path).view(np.float32)
        assert (np.abs(found - wanted) / size).max() < ORDER_BOUND, name


def test_the_build_with_dot_products_uses_them(machine: Machine, tmp_path: Path) -> None:
    """On a processor that only lacks them the kernel must die of an unknown instruction."""
    keys = tq3_0.encode(np.ones((1, 32), dtype=np.float32))
    packed, _ = query(machine, np.ones((1, 32), dtype=np.float32), tmp_path)
    files = [tmp_path / "keys", tmp_path / "query"]
    keys.tofile(files[0])
    packed.tofile(files[1])
    argv = ("dot", "32", str(tmp_path / "out"), *map(str, files))
    done = machine.run("kernels", *argv, processor=WITHOUT_DOTPROD)
    assert done.returncode == (-signal.SIGILL if machine.name == "dotprod" else 0), done.stderr


@pytest.mark.parametrize(
    "argv",
    [
        ("test-quantize-fns",),
        ("test-tq3_0", "codec"),
        ("test-tq3_0", "norm"),
        ("test-tq3_0", "zero"),
        ("test-tq3_0", "fast"),
        ("test-tq3_0", "pairs", "CPU", "tq3_0/tq3_0,q8_0/tq3_0,f16/tq3_0"),
    ],
    ids=lambda argv: "-".join(argv[:2]),
)
def test_upstream_and_the_series_test_themselves(machine: Machine, argv: tuple[str, ...]) -> None:
    done = machine.run(*argv)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_both_architectures_are_there() -> None:
    assert set(ARCHITECTURES) == {"neon", "dotprod"}
