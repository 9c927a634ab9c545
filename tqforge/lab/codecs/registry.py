"""The named codecs, and pairs of them."""

from __future__ import annotations

from dataclasses import replace

from tqforge.errors import CacheTypeError
from tqforge.lab.codecs import qjl
from tqforge.lab.codecs.codec import Codec

_GGML = ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "tq3_0")
_BITS = (2, 3, 4, 5, 6)


def _named() -> dict[str, Codec]:
    codecs = {"f16": Codec()}
    codecs |= {name: Codec(ggml=name) for name in _GGML}
    codecs |= {f"{name}-head": Codec(ggml=name, rotation="head") for name in _GGML if name != "tq3_0"}
    for bits in _BITS:
        plain = Codec(bits=bits, scale="search")
        codecs[f"lm{bits}"] = plain
        codecs[f"lm{bits}-block"] = replace(plain, rotation="block")
        codecs[f"lm{bits}-head"] = replace(plain, rotation="head")
        codecs[f"lm{bits}-dense"] = replace(plain, rotation="dense")
        codecs[f"lm{bits}-rms"] = replace(plain, rotation="block", scale="rms")
        codecs[f"lm{bits}-norm"] = replace(plain, rotation="block", scale="norm")
        codecs[f"lm{bits}-wide"] = replace(plain, rotation="dense", block=0, scale="norm")
        codecs[f"lm{bits}-wide-rms"] = replace(codecs[f"lm{bits}-wide"], scale="rms")
        codecs[f"lm{bits}-qjl"] = replace(codecs[f"lm{bits}-wide"], residual=qjl.Residual())
        codecs[f"lm{bits}-qjl-gaussian"] = replace(
            codecs[f"lm{bits}-wide"], residual=qjl.Residual(projection="gaussian")
        )
    return codecs


CODECS = _named()


def describe(name: str) -> str:
    """Return a codec in one line."""
    one = CODECS[name]
    if one.ggml or not one.bits:
        base = f"{one.ggml or 'f16'} of ggml"
    else:
        base = f"{one.bits}-bit Lloyd-Max codebook, one {one.scale} scale per {one.block or 'head'}"
    turned = {"none": "", "block": "signs and Hadamard 32", "head": "Hadamard over the head", "dense": "dense rotation"}
    residual = f"QJL residual ({one.residual.projection})" if one.residual else ""
    return ", ".join(part for part in (base, turned[one.rotation], residual) if part)


def codec(name: str) -> Codec:
    """Return the codec of that name. Raises CacheTypeError for an unknown one."""
    if name not in CODECS:
        raise CacheTypeError(f"Unknown codec '{name}'.", remedy="List the codecs with `tqforge lab list`.")
    return CODECS[name]
