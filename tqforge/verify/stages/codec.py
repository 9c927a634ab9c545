"""Compare the C encoders and the decoder with the NumPy reference, code for code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqforge.adapters.llama.api.cache import Decode, Encode, ListEncoders, ReadCache
from tqforge.adapters.llama.client import Child
from tqforge.core import tq3_0
from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import F16
from tqforge.errors import CacheTypeError
from tqforge.report.judge.thresholds import CODEBOOK_SLACK, COSINE_SLACK, NORM_SLACK, WORST_COSINE
from tqforge.report.schema.base import Check, StageStatus
from tqforge.report.schema.stages import CheckStage
from tqforge.verify.session import Session, padded

_CODEBOOK_BLOCKS = 40_000
_REAL_TEXT = (
    "A cache keeps what was computed for every earlier token, so that the next one costs a single pass. Its rows are "
    "what the format must hold: keys after their rotation by position, and values as they are."
)


@dataclass(frozen=True)
class Sample:
    """Named blocks of one kind."""

    name: str
    blocks: tq3_0.Floats


def special_blocks() -> list[Sample]:
    """Return edge cases: zero, one-hot, huge, tiny, subnormal, NaN and Inf blocks."""
    rng = np.random.default_rng(3)
    normal = rng.standard_normal((64, 32)).astype(np.float32)
    with_nan, with_inf = normal.copy(), normal.copy()
    with_nan[np.arange(64), rng.integers(0, 32, 64)] = np.nan
    with_inf[np.arange(64), rng.integers(0, 32, 64)] = np.float32(np.inf)
    one_hot = np.concatenate([np.eye(32, dtype=np.float32) * sign for sign in (1.0, -3.5)]).astype(np.float32)
    signs = np.stack([tq3_0.SIGNS * np.float32(scale) for scale in (1.0, -1.0, 1e-3, 60000.0)])
    edges = np.array([[65504], [65520], [65536], [1e5], [1e18], [3e38]], dtype=np.float32)
    huge = (normal[:6] / np.abs(normal[:6]).max(axis=1, keepdims=True) * edges).astype(np.float32)
    tiny = np.concatenate([normal * np.float32(scale) for scale in (1e-4, 1e-7, 3e-8, 1e-9, 1e-11)])
    subnormal = (normal * np.float32(1e-30)) * np.float32(1e-10)
    return [
        Sample("zero", np.zeros((3, 32), dtype=np.float32)),
        Sample("one-hot", one_hot),
        Sample("sign-aligned", signs.astype(np.float32)),
        Sample("huge", huge),
        Sample("tiny", tiny),
        Sample("subnormal", subnormal),
        Sample("NaN", with_nan),
        Sample("Inf", with_inf),
    ]


def run(session: Session) -> CheckStage:
    """Check every exported encoder on every sample, the decoder, and the figures of the codec."""
    child = session.child("codec")
    if TQ3_0 not in child.loaded.blocks():
        raise CacheTypeError(
            f"The built library has no type '{TQ3_0}'.",
            where=str(session.target.library),
            remedy="Build it with `tqforge build`.",
        )
    samples = [Sample("random", _normal(session.settings.codec_blocks)), *special_blocks()]
    samples.append(Sample("real", _real_blocks(session)))
    native = Native(session.child("codec"), session.folder)
    checks = [encoder_check(native, name, samples) for name in native.encoders()]
    if not checks:
        checks.append(
            Check(name="encoders", status=StageStatus.FAILED, expected="at least one", observed="none exported")
        )
    checks += [decoder_check(native, samples), *figures(native, samples[0].blocks)]
    return CheckStage(name="codec", checks=tuple(checks))


class Native:
    """The C codec in the child process; arrays are passed in files."""

    def __init__(self, child: Child, folder: Path) -> None:
        self._child, self._in, self._out = child, folder / "codec-in.npy", folder / "codec-out.npy"

    def encoders(self) -> list[str]:
        return list(self._child.ask(ListEncoders(type=TQ3_0), timeout=60).encoders)

    def encode(self, encoder: str, blocks: tq3_0.Floats) -> tq3_0.Packed:
        self._through(Encode(type=TQ3_0, encoder=encoder, values=self._in, out=self._out), blocks)
        return self._result().astype(np.uint8)

    def decode(self, packed: tq3_0.Packed) -> tq3_0.Floats:
        self._through(Decode(type=TQ3_0, packed=self._in, out=self._out), packed)
        return self._result().astype(np.float32)

    def roundtrip(self, blocks: tq3_0.Floats) -> tq3_0.Floats:
        return self.decode(self.encode(self.encoders()[0], blocks))

    def _through(self, request: Encode | Decode, array: NDArray[Any]) -> None:
        try:
            np.save(self._in, array)
            self._child.ask(request, timeout=300)
        finally:
            self._in.unlink(missing_ok=True)

    def _result(self) -> NDArray[Any]:
        try:
            return np.asarray(np.load(self._out))
        finally:
            self._out.unlink(missing_ok=True)


def encoder_check(native: Native, encoder: str, samples: list[Sample]) -> Check:
    """Check that every byte of every block is equal; name the samples that differ."""
    total, wrong = 0, []
    for sample in samples:
        ours, theirs = tq3_0.encode(sample.blocks), native.encode(encoder, sample.blocks)
        different = int((ours != theirs).any(axis=1).sum())
        total += len(sample.blocks)
        if different:
            wrong.append(f"{different} of {len(sample.blocks)} {sample.name} blocks{_generation(sample, theirs)}")
    return Check(
        name=f"{encoder} = reference",
        status=StageStatus.FAILED if wrong else StageStatus.PASSED,
        expected="every byte equal",
        observed="; ".join(wrong) or f"equal on {', '.join(f'{len(s.blocks)} {s.name}' for s in samples)} blocks",
        cases=total,
    )


def _generation(sample: Sample, theirs: tq3_0.Packed) -> str:
    """Name the earlier generation of the encoder that the library has, if it is one."""
    for variant in tq3_0.VARIANTS:
        if np.array_equal(tq3_0.encode(sample.blocks, variant), theirs):
            return f" (they are those of the '{variant.name}' encoder)"
    return ""


def decoder_check(native: Native, samples: list[Sample]) -> Check:
    """Check the decoder on what the reference encodes: bit for bit, NaN included."""
    packed = tq3_0.encode(np.concatenate([sample.blocks for sample in samples]))
    ours, theirs = tq3_0.decode(packed), native.decode(packed)
    wrong = int((~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))).any(axis=1).sum())
    return Check(
        name=f"dequantize_row_{TQ3_0} = reference",
        status=StageStatus.FAILED if wrong else StageStatus.PASSED,
        expected="every value equal",
        observed=f"{wrong} blocks differ" if wrong else "equal",
        cases=len(packed),
    )


def figures(native: Native, normal: tq3_0.Floats) -> list[Check]:
    """Check the codebook, norms, zeros and the worst case of the C codec."""
    many = _normal(_CODEBOOK_BLOCKS)
    distortion = tq3_0.codebook_distortion(many, centroids(native))
    x, y = normal.astype(np.float64), native.roundtrip(normal).astype(np.float64)
    norms = np.abs(np.sqrt((y * y).sum(axis=1) / (x * x).sum(axis=1)) - 1).max()
    zeros = native.roundtrip(np.zeros((2, 32), dtype=np.float32))
    aligned = native.roundtrip(tq3_0.SIGNS[None, :].copy())[0].astype(np.float64)
    worst = float(tq3_0.SIGNS @ aligned / np.sqrt(32 * (aligned * aligned).sum()))
    return [
        _within(
            "mean squared error of the codebook on N(0,1)",
            distortion,
            tq3_0.DISTORTION,
            CODEBOOK_SLACK * tq3_0.DISTORTION,
            many.size,
        ),
        _within("norm of a decoded block, largest relative error", float(norms), 0.0, NORM_SLACK, len(normal)),
        _within("zero block, largest decoded value", float(np.abs(zeros).max()), 0.0, 0.0, 2),
        _within("block parallel to the signs, cosine after decode", worst, WORST_COSINE, COSINE_SLACK, 1),
    ]


def centroids(native: Native) -> tq3_0.Floats:
    """Read the codebook out of the C decoder: decode blocks of one code with d = 1 and rotate back."""
    codes = np.repeat(np.arange(8, dtype=np.uint8)[:, None], tq3_0.BLOCK, axis=1)
    scale = np.full((8, 1), 1.0, dtype="<f2").view(np.uint8)
    decoded = native.decode(np.concatenate([scale, tq3_0.pack(codes)], axis=1))
    found: tq3_0.Floats = tq3_0.rotate(decoded).mean(axis=1, dtype=np.float64).astype(np.float32)
    return found


def _within(name: str, seen: float, wanted: float, slack: float, cases: int) -> Check:
    good = abs(seen - wanted) <= slack
    return Check(
        name=name,
        status=StageStatus.PASSED if good else StageStatus.FAILED,
        expected=f"{wanted:g} +- {slack:.2g}",
        observed=f"{seen:.6g}",
        cases=cases,
    )


def _normal(count: int) -> tq3_0.Floats:
    return np.random.default_rng(1).standard_normal((count, 32)).astype(np.float32)


def _real_blocks(session: Session) -> tq3_0.Floats:
    """Return K and V rows of the model from an f16 cache."""
    child = session.model("codec")
    tokens = session.tokenize(child, [_REAL_TEXT])[0]
    path = session.folder / "codec-real.npy"
    spec = session.context(F16, padded(len(tokens) + 1))
    try:
        session.ask(child, ReadCache(spec=spec, tokens=tuple(tokens), save=path))
        return tq3_0.blocks_of(np.load(path))
    finally:
        path.unlink(missing_ok=True)
