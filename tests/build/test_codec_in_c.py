"""The C codec, and gguf-py's, against the NumPy reference, block for block."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tqforge.adapters.llama.api.cache import Encode as EncodeRequest
from tqforge.adapters.llama.api.cache import ListEncoders
from tqforge.adapters.llama.client import Child
from tqforge.core import tq3_0

ANY_FLOAT = st.floats(width=32)
ORDINARY = st.floats(-100, 100, width=32)
SUBNORMAL = st.floats(-(2.0**-126), 2.0**-126, width=32)
NEAR_LIMIT = st.floats(60000, 70000, width=32)
BLOCKS = st.one_of(
    *(
        hnp.arrays(np.float32, st.tuples(st.integers(1, 8), st.just(32)), elements=kind)
        for kind in (ANY_FLOAT, ORDINARY, SUBNORMAL, NEAR_LIMIT)
    )
)
Encode = Callable[[str, tq3_0.Floats], tq3_0.Packed]


@pytest.fixture(scope="module")
def encode(child: Child, tmp_path_factory: pytest.TempPathFactory) -> Encode:
    folder: Path = tmp_path_factory.mktemp("codec")

    def call(encoder: str, blocks: tq3_0.Floats) -> tq3_0.Packed:
        np.save(folder / "in.npy", blocks)
        request = EncodeRequest(type="tq3_0", encoder=encoder, values=folder / "in.npy", out=folder / "out.npy")
        child.ask(request, timeout=60)
        result: tq3_0.Packed = np.load(folder / "out.npy")
        return result

    return call


@pytest.mark.parametrize("encoder", ["quantize_row_tq3_0_ref", "quantize_row_tq3_0"])
def test_every_encoder_gives_the_bytes_of_the_reference(encode: Encode, encoder: str) -> None:
    @given(BLOCKS)
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    def equal(blocks: tq3_0.Floats) -> None:
        assert np.array_equal(encode(encoder, blocks), tq3_0.encode(blocks))

    equal()


def test_a_million_normal_values(encode: Encode) -> None:
    blocks = np.random.default_rng(11).standard_normal((32_768, 32)).astype(np.float32)
    assert np.array_equal(encode("quantize_row_tq3_0", blocks), tq3_0.encode(blocks))


def test_the_library_has_both_encoders(child: Child) -> None:
    names = child.ask(ListEncoders(type="tq3_0"), timeout=60).encoders
    assert names == ("quantize_row_tq3_0_ref", "quantize_row_tq3_0")


PROGRAM = """
import sys
import numpy as np
import gguf
from gguf import quants
assert gguf.__file__.startswith(sys.argv[1]), gguf.__file__
kind = gguf.GGMLQuantizationType.TQ3_0
packed = quants.quantize(np.load(sys.argv[2]), kind)
np.savez(sys.argv[3], packed=packed, values=quants.dequantize(packed, kind))
"""


def test_gguf_py_of_the_tree_gives_the_same_bytes(checkout: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    scales = np.exp(rng.uniform(-20, 9, (4096, 1)))
    blocks = (rng.standard_normal((4096, 32)) * scales).astype(np.float32)
    blocks[:4] = [[0.0], [1.0], [np.nan], [np.inf]]
    np.save(tmp_path / "in.npy", blocks)
    package, out = checkout / "gguf-py", tmp_path / "out.npz"
    argv: list[str | Path] = [sys.executable, "-c", PROGRAM, package, tmp_path / "in.npy", out]
    subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(package)}, check=True)
    with np.load(out) as made:
        assert np.array_equal(made["packed"], tq3_0.encode(blocks))
        assert np.array_equal(made["values"], tq3_0.decode(tq3_0.encode(blocks)), equal_nan=True)
