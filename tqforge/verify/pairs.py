"""Check models, pairs and lengths against the model file and the library's types, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tqforge.adapters.gguf_io import ModelFacts
from tqforge.core.cache_types import CACHE_TYPES, UNQUANTIZED
from tqforge.core.pair import Pair
from tqforge.errors import CacheTypeError, ContextLengthError, ModelError


def check_model(facts: ModelFacts) -> None:
    """Raise ModelError for a model without a K/V cache."""
    if facts.recurrent or not facts.heads:
        raise ModelError(
            f"The architecture '{facts.arch}' keeps a recurrent state, not K and V alone.",
            where=str(facts.path),
            remedy="Choose a transformer model.",
        )


def check_pair(pair: Pair, facts: ModelFacts, blocks: Mapping[str, int]) -> None:
    """Raises CacheTypeError when the library lacks a type of the pair, or the model's heads cannot hold its blocks.

    `blocks` is the block size by type name, as the loaded library gives it.
    """
    for side, name, head in (("K", pair.k, facts.head_k), ("V", pair.v, facts.head_v)):
        if name not in blocks or name not in CACHE_TYPES:
            usable = ", ".join(kind for kind in CACHE_TYPES if kind in blocks)
            what = "is no cache type of llama.cpp" if name in blocks else "is not in the built library"
            raise CacheTypeError(
                f"The type '{name}' of pair {pair} {what}.",
                remedy=f"Choose from: {usable}. `tq3_0` is there after `tqforge build`.",
            )
        if head % blocks[name]:
            fitting = ", ".join(kind for kind in ("f16", "q8_0", "q4_0") if head % blocks.get(kind, head + 1) == 0)
            raise CacheTypeError(
                f"{side} heads of this model have {head} values, no multiple of the {blocks[name]} that "
                f"'{name}' stores in a block (pair {pair}).",
                where=str(facts.path),
                remedy=f"Choose from: {fitting or 'f16'}.",
            )
    if facts.mla and any(name not in UNQUANTIZED for name in (pair.k, pair.v)):
        raise CacheTypeError(
            f"The model stores one latent vector instead of K and V (MLA); {pair} is not tested with it.",
            where=str(facts.path),
            remedy="Choose f16, or a model without MLA.",
        )


def check_lengths(lengths: Iterable[int], reserve: int, facts: ModelFacts) -> None:
    """Raise ContextLengthError when a prompt and its answer exceed the trained context of the model."""
    for length in lengths:
        if length + reserve > facts.trained_context:
            raise ContextLengthError(
                f"{length} tokens and an answer of {reserve} are more than the {facts.trained_context} "
                "the model was trained for.",
                where=str(facts.path),
                remedy=f"Choose lengths up to {facts.trained_context - reserve} with --lengths.",
            )


def bits_per_value(pair: Pair, facts: ModelFacts, table: Mapping[str, tuple[int, int]]) -> float:
    """Return the stored bits per value over K and V, from (block, bytes) by type name."""
    k_block, k_bytes = table[pair.k]
    v_block, v_bytes = table[pair.v]
    values = facts.k_width + facts.v_width
    return 8 * (facts.k_width * k_bytes / k_block + facts.v_width * v_bytes / v_block) / values
