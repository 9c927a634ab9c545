"""The codec checks on a library that is right, and on libraries with one fault each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tqforge.adapters.llama.api.cache import Decode, Encode, ListEncoders
from tqforge.core import tq3_0
from tqforge.report.schema.base import Check, StageStatus
from tqforge.verify.stages import codec
from tqforge.verify.stages.codec import Native, Sample

RANDOM = np.random.default_rng(7).standard_normal((64, 32)).astype(np.float32)
SAMPLES = [Sample("random", RANDOM), *codec.special_blocks()]


class Library(Native):
    """A library whose codec is the reference, with the given faults."""

    def __init__(
        self,
        encode: Callable[[tq3_0.Floats], tq3_0.Packed] = tq3_0.encode,
        decode: Callable[[tq3_0.Packed], tq3_0.Floats] = tq3_0.decode,
    ) -> None:
        self._encode, self._decode = encode, decode

    def encoders(self) -> list[str]:
        return ["quantize_row_tq3_0_ref"]

    def encode(self, encoder: str, blocks: tq3_0.Floats) -> tq3_0.Packed:
        return self._encode(blocks)

    def decode(self, packed: tq3_0.Packed) -> tq3_0.Floats:
        return self._decode(packed)


def one_bit_wrong(blocks: tq3_0.Floats) -> tq3_0.Packed:
    packed = tq3_0.encode(blocks).copy()
    packed[0, -1] ^= 1
    return packed


def failed(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if check.status is StageStatus.FAILED]


def test_the_special_blocks_are_what_their_names_say() -> None:
    blocks = {sample.name: sample.blocks for sample in codec.special_blocks()}
    assert {sample.dtype for sample in blocks.values()} == {np.dtype(np.float32)}
    assert not blocks["zero"].any()
    assert (np.count_nonzero(blocks["one-hot"], axis=1) == 1).all()
    assert (np.isnan(blocks["NaN"]).sum(axis=1) == 1).all()
    assert (np.isinf(blocks["Inf"]).sum(axis=1) == 1).all()
    assert np.abs(blocks["huge"]).max() == pytest.approx(3e38)
    assert 0 < np.abs(blocks["subnormal"]).max() < np.finfo(np.float32).tiny


def test_an_equal_encoder_passes_and_counts_its_blocks() -> None:
    check = codec.encoder_check(Library(), "x", SAMPLES)
    assert (check.name, check.status) == ("x = reference", StageStatus.PASSED)
    assert check.cases == sum(len(sample.blocks) for sample in SAMPLES)
    assert check.observed.startswith("equal on 64 random, 3 zero, 64 one-hot")


def test_one_wrong_bit_names_every_sample_that_has_it() -> None:
    check = codec.encoder_check(Library(one_bit_wrong), "x", SAMPLES[:2])
    assert check.status is StageStatus.FAILED
    assert check.observed == "1 of 64 random blocks; 1 of 3 zero blocks"


@pytest.mark.parametrize("variant", tq3_0.VARIANTS[:-1], ids=lambda variant: variant.name)
def test_an_earlier_encoder_is_named(variant: tq3_0.Variant) -> None:
    both = np.concatenate([sample.blocks for sample in SAMPLES[:2]])  # without zero blocks, two of them are equal
    check = codec.encoder_check(Library(lambda blocks: tq3_0.encode(blocks, variant)), "x", [Sample("mixed", both)])
    assert check.status is StageStatus.FAILED
    assert check.observed.endswith(f"(they are those of the '{variant.name}' encoder)")


def test_the_decoder_is_compared_bit_for_bit() -> None:
    assert codec.decoder_check(Library(), SAMPLES).status is StageStatus.PASSED

    def off_by_an_ulp(packed: tq3_0.Packed) -> tq3_0.Floats:
        values = tq3_0.decode(packed).copy()
        values[2, 5] = np.nextafter(values[2, 5], np.float32(np.inf))
        return values

    check = codec.decoder_check(Library(decode=off_by_an_ulp), SAMPLES)
    assert (check.status, check.observed) == (StageStatus.FAILED, "1 blocks differ")


def test_the_figures_of_the_reference_are_within_their_slack() -> None:
    checks = codec.figures(Library(), RANDOM)
    assert len(checks) == 4
    assert failed(checks) == []


def test_a_scaled_decoder_fails_the_norm_and_not_the_direction() -> None:
    checks = codec.figures(Library(decode=lambda packed: tq3_0.decode(packed) * np.float32(1.01)), RANDOM)
    assert "norm of a decoded block, largest relative error" in failed(checks)
    assert "block parallel to the signs, cosine after decode" not in failed(checks)


def test_a_decoder_that_shifts_zero_fails_the_zero_block() -> None:
    checks = codec.figures(Library(decode=lambda packed: tq3_0.decode(packed) + np.float32(1e-6)), RANDOM)
    assert "zero block, largest decoded value" in failed(checks)


def test_the_codebook_is_read_out_of_the_decoder() -> None:
    found = codec.centroids(Library())
    assert found.shape == (8,)
    assert (np.diff(found) > 0).all()
    assert found == pytest.approx(-found[::-1], abs=1e-6)
    doubled = codec.centroids(Library(decode=lambda packed: 2 * tq3_0.decode(packed)))
    assert doubled == pytest.approx(2 * found)


class FileChild:
    """Answers like the child process: arrays come and go in files."""

    def __init__(self) -> None:
        self.fails = False

    def ask(self, request: Encode | Decode | ListEncoders, timeout: float) -> object:
        if self.fails:
            raise TimeoutError(f"no answer in {timeout} s")
        assert isinstance(request, Encode)
        np.save(request.out, tq3_0.encode(np.load(request.values)))
        return None


def exchange(child: FileChild, folder: Path) -> Native:
    native = Native.__new__(Native)
    vars(native).update(_child=child, _in=folder / "in.npy", _out=folder / "out.npy")
    return native


def test_arrays_are_removed_after_an_exchange(tmp_path: Path) -> None:
    packed = exchange(FileChild(), tmp_path).encode("x", RANDOM)
    assert np.array_equal(packed, tq3_0.encode(RANDOM))
    assert list(tmp_path.iterdir()) == []


def test_arrays_are_removed_when_the_child_fails(tmp_path: Path) -> None:
    child = FileChild()
    child.fails = True
    with pytest.raises(TimeoutError, match="300"):
        exchange(child, tmp_path).encode("x", RANDOM)
    assert list(tmp_path.iterdir()) == []
