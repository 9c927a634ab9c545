"""Planted faults: the emulator must find each of them in the kernels of the tree, and nothing in the unchanged ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from emulator_tools import Emulator, Tree
from mutants import Change, mutant

WRONG = "wrong numbers"
RACE = "read-write-race"
BARRIER = "simdgroup_barrier(mem_flags::mem_threadgroup);"
VEC, MATRIX = "kernels/fa_vec_common.metal", "kernels/fa_common.metal"


@dataclass(frozen=True)
class Planted:
    """A change and the evidence of it that the emulator must give for `pair` in `suite`."""

    change: Change
    suite: str
    evidence: str
    pair: str = ""


def shared(file: str, old: str, new: str, suite: str, evidence: str) -> dict[str, Planted]:
    """A fault in a template that the kernels of q4_0 and of tq3_0 are made of."""
    sources = {"q4_0": ("fa_vec_q4_0",) if file == VEC else ("fa_q4_0",), "tq3_0": ("fa_tq3_0",)}
    return {name: Planted(Change(file, old, new, s), suite, evidence) for name, s in sources.items()}


SHARED = {
    "missing-barrier-before-softmax": shared(
        VEC, f"{BARRIER}\n\n            // online softmax", "\n\n            // online softmax", "vec", RACE
    ),
    "missing-barrier-after-loading-the-query": shared(
        VEC,
        "threadgroup_barrier(mem_flags::mem_threadgroup);\n\n    {\n        float S[Q];",
        "\n\n    {\n        float S[Q];",
        "vec",
        RACE,
    ),
    "missing-barrier-after-unpacking-keys": shared(
        MATRIX,
        f"sk4x4[4*ty + tx] = tmp;\n                            }}\n\n                            {BARRIER}",
        "sk4x4[4*ty + tx] = tmp;\n                            }\n\n",
        "matrix",
        RACE,
    ),
    "result-over-scores": shared(VEC, "SMEM_Q + SMEM_S + 2*sgitg*Q*PV", "SMEM_Q + 2*sgitg*Q*PV", "vec", RACE),
    "result-past-the-allocation": shared(
        VEC,
        "SMEM_Q + SMEM_S + 2*sgitg*Q*PV",
        "SMEM_Q + SMEM_S + 256 + 2*sgitg*Q*PV",
        "vec",
        "threadgroup-out-of-bounds",
    ),
    "key-of-the-next-row": shared(
        VEC,
        "(k + ((ic + NE*cc + ty)*args.nb11))",
        "(k + ((ic + NE*cc + ty + 1)*args.nb11))",
        "vec",
        "device-out-of-bounds",
    ),
    "barrier-for-half-of-the-lanes": shared(
        VEC,
        f"{BARRIER}\n\n            // online softmax",
        f"if (tiisg < 16) {BARRIER}\n            // online softmax",
        "vec",
        "divergence",
    ),
}

Q4_0 = {
    "packing-shift": Planted(Change("kernels/quantize.h", "xi1 << 4;", "xi1 << 3;", ("quantize",)), "rows", WRONG),
    "unpacking-shift": Planted(
        Change("kernels/dequantize.h", "d2 = d1 / 256.f", "d2 = d1 / 128.f", ("quantize",)), "rows", WRONG
    ),
    "instantiation-removed": Planted(
        Change(
            "kernels/fa_vec_q4_0.metal",
            '"kernel_flash_attn_ext_vec_q4_0_dk64_dv64"',
            '"removed_dk64_dv64"',
            ("fa_vec_q4_0",),
        ),
        "vec",
        "missing-kernel",
    ),
    "supports-op-too-generous": Planted(
        Change(
            "ggml-metal-device.m",
            "case GGML_TYPE_Q8_0:\n                case GGML_TYPE_Q4_0:\n                case GGML_TYPE_Q4_1:",
            "case GGML_TYPE_IQ4_NL:\n                case GGML_TYPE_Q4_0:\n                case GGML_TYPE_Q4_1:",
        ),
        "vec",
        "missing-kernel",
        "iq4_nl/iq4_nl",
    ),
}

Q4_0["padding-past-its-part-of-the-scratch"] = Planted(
    Change("kernels/fa_aux.metal", "v_pad    = k_pad + args.nb11", "v_pad    = k_pad + 3*args.nb11", ("fa_aux",)),
    "matrix",
    "device-out-of-bounds",
)

TQ3_0 = {
    "packing-shift": Planted(
        Change("kernels/quantize.h", "4 + n : 3 - n) << 3*j", "4 + n : 3 - n) << 2*j", ("quantize",)), "rows", WRONG
    ),
    "scale-not-the-best": Planted(
        Change("kernels/quantize.h", "return f*f/cc;", "return f/cc;", ("quantize",)), "rows", WRONG
    ),
    "boundary-of-another-scale": Planted(
        Change("kernels/quantize.h", "kbounds_tq3_0[ib + 2])", "kbounds_tq3_0[ib + 1])", ("quantize",)), "rows", WRONG
    ),
    # seen by a rounding of the scale in one block of some thousands
    "norm-in-plain-floats": Planted(
        Change("kernels/quantize.h", "return float2(t, e - (t - s));", "return float2(s, 0.0f);", ("quantize",)),
        "blocks",
        WRONG,
    ),
    "root-of-one-float": Planted(
        Change(
            "kernels/quantize.h", "return r + (fma(-r, r, a[0]) + a[1])/(2.0f*r);", "return sqrt(a[0]);", ("quantize",)
        ),
        "blocks",
        WRONG,
    ),
    "infinity-for-a-block-without-scale": Planted(
        Change("kernels/quantize.h", "(ushort) 0x7e00", "(ushort) 0x7c00", ("quantize",)), "blocks", WRONG
    ),
    "codes-in-a-block-of-zeros": Planted(
        Change("kernels/quantize.h", "sum_sq[0] < 1e-20f", "sum_sq[0] < 1e-30f", ("quantize",)), "blocks", WRONG
    ),
    "unpacking-shift": Planted(
        Change("kernels/dequantize.h", ">> (4*(il & 1)), xb->d", ">> (3*(il & 1)), xb->d", ("fa_tq3_0",)), "vec", WRONG
    ),
    "sign-in-the-rotation-of-the-query": Planted(
        Change("kernels/dequantize.h", "v = i & n ? u - v : v + u;", "v = i & n ? v - u : v + u;", ("fa_tq3_0",)),
        "vec",
        WRONG,
    ),
    "sign-in-the-rotation-of-a-block": Planted(
        Change("kernels/dequantize.h", "v[i + n] = a - b;", "v[i + n] = b - a;", ("quantize",)), "rows", WRONG
    ),
    "sign-vector": Planted(
        Change("kernels/dequantize.h", "ksigns_tq3_0[4*i + 1]", "ksigns_tq3_0[4*i + 2]", ("quantize",)), "rows", WRONG
    ),
    "rotation-stops-early": Planted(
        Change("kernels/dequantize.h", "(ushort n = 1; n < 8; n *= 2)", "(ushort n = 1; n < 4; n *= 2)", ("fa_tq3_0",)),
        "vec",
        WRONG,
    ),
    "read-past-the-row": Planted(
        Change("kernels/dequantize.h", "xb->qs + ((3*il) >> 1)", "xb->qs + 1 + ((3*il) >> 1)", ("fa_tq3_0",)),
        "vec",
        "device-out-of-bounds",
    ),
    "instantiation-removed": Planted(
        Change(
            "kernels/fa_tq3_0.metal",
            '"kernel_flash_attn_ext_vec_tq3_0_dk64_dv64_q1_ne4"',
            '"removed_dk64_dv64"',
            ("fa_tq3_0",),
        ),
        "vec",
        "missing-kernel",
    ),
    "supports-op-too-generous": Planted(
        Change(
            "ggml-metal-device.m",
            "op->src[1]->type != GGML_TYPE_Q5_0 && op->src[1]->type != GGML_TYPE_Q4_0) {",
            "op->src[1]->type != GGML_TYPE_Q5_0 && op->src[1]->type != GGML_TYPE_Q4_1) {",
        ),
        "vec",
        "missing-kernel",
        "q4_1/tq3_0",
    ),
}

ALL = [("q4_0", name, p) for name, p in Q4_0.items()] + [("tq3_0", name, p) for name, p in TQ3_0.items()]
ALL += [(kind, name, both[kind]) for kind in ("q4_0", "tq3_0") for name, both in SHARED.items()]


@pytest.mark.parametrize(("kind", "planted"), [pytest.param(k, p, id=f"{k}-{name}") for k, name, p in ALL])
def test_a_planted_fault_is_found(
    emulator: Emulator, tree: Tree, compiler: str, tmp_path: Path, kind: str, planted: Planted
) -> None:
    if not tree.has_type(kind):
        pytest.skip(f"this tree has no type {kind}")
    changed = mutant(emulator, compiler, planted.change, tmp_path)
    report = changed.direct("--pair", planted.pair or f"{kind}/{kind}", "--heads", "64", "--suite", planted.suite)
    assert report.code != 0, "not found"
    if planted.evidence == WRONG:
        assert "FAIL" in report.output, report.describe()
    else:
        assert planted.evidence in report.kinds(), report.describe()


CONTROLS = {"q4_0": ("quantize", "fa_q4_0", "fa_vec_q4_0"), "q8_0": ("fa_q8_0", "fa_vec_q8_0"), "tq3_0": ("fa_tq3_0",)}


@pytest.mark.parametrize("kind", CONTROLS)
def test_the_unchanged_kernels_pass_the_same_way(
    emulator: Emulator, tree: Tree, compiler: str, tmp_path: Path, kind: str
) -> None:
    if not tree.has_type(kind):
        pytest.skip(f"this tree has no type {kind}")
    same = mutant(
        emulator, compiler, Change("kernels/common.h", "#pragma once", "#pragma once", CONTROLS[kind]), tmp_path
    )
    report = same.direct("--pair", f"{kind}/{kind}", "--heads", "64")
    assert (report.code, report.findings()) == (0, []), report.describe()
