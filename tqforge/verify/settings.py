"""What a run measures: two profiles, and the changes that the command line makes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from tqforge.adapters.llama.api.model import ALL_LAYERS
from tqforge.core.pair import F16, Pair
from tqforge.errors import UsageError

Profile = Literal["quick", "full", "custom"]

DEFAULT_PAIRS = tuple(Pair.parse(name) for name in ("f16", "q8_0", "q4_0", "tq3_0", "q8_0/tq3_0"))
#: With q5_0, the stock type of nearly as many bits as q8_0/tq3_0.
FULL_PAIRS = tuple(Pair.parse(name) for name in ("f16", "q8_0", "q5_0", "q4_0", "tq3_0", "q8_0/tq3_0"))
N_BATCH = 512


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The plan of one run. Lengths are whole prompts in tokens, with template and question."""

    profile: Profile
    pairs: tuple[Pair, ...] = DEFAULT_PAIRS
    stages: tuple[str, ...] = ()
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    seeds: tuple[int, ...]
    answer_tokens: int = 32
    memory_context: int
    quality_prefixes: tuple[int, ...]
    quality_scored: int = 256
    greedy_starts: int
    greedy_tokens: int
    rotations: bool = False
    plan_lengths: tuple[int, ...] = (4096, 16384, 32768)
    plan_context: int | None = None
    budgets: tuple[int, ...] = ()
    codec_blocks: int
    speed_depths: tuple[int, ...] = (0, 2048, 4096, 8192)
    speed_prefill: int = 512
    speed_decode: int = 16
    speed_rounds: int = 5
    speed_patience: float = 20.0  # seconds; slower runs are measured twice, however many rounds there are
    speed_llama_bench: bool = True
    ops_heads: tuple[int, ...] = ()  # head sizes of attention in stage ops; empty: all
    threads: int = 0
    gpu_layers: int = ALL_LAYERS
    timeout: float = 900.0

    @property
    def with_control(self) -> tuple[Pair, ...]:
        """Return the pairs with f16, the reference, first."""
        return (F16, *(pair for pair in self.pairs if pair != F16))


QUICK = Settings(
    profile="quick",
    speed_depths=(0, 1024),
    speed_prefill=256,
    speed_decode=8,
    speed_rounds=3,
    speed_llama_bench=False,
    lengths=(512,),
    depths=(0.1, 0.5, 0.9),
    seeds=(0, 1, 2),
    memory_context=2048,
    quality_prefixes=(512,),
    greedy_starts=4,
    greedy_tokens=32,
    codec_blocks=20_000,
    ops_heads=(64, 128),
)
FULL = Settings(
    profile="full",
    pairs=FULL_PAIRS,
    lengths=(512, 2048, 4096),
    depths=(0.1, 0.5, 0.9),
    seeds=(0, 1, 2),
    memory_context=8192,
    quality_prefixes=(512, 1536, 4096),
    greedy_starts=8,
    greedy_tokens=32,
    rotations=True,
    codec_blocks=200_000,
)


def parse_pairs(text: str) -> tuple[Pair, ...]:
    """Parse `q8_0,q8_0/tq3_0`. Raises UsageError with the reason."""
    try:
        pairs = tuple(dict.fromkeys(Pair.parse(part) for part in _words(text)))
    except ValueError as error:
        raise UsageError(f"{error}.", remedy="Write --pairs f16,q8_0/tq3_0.") from error
    if not pairs:
        raise UsageError("--pairs is empty.", remedy="Write --pairs f16,q8_0/tq3_0.")
    return pairs


def parse_lengths(text: str) -> tuple[int, ...]:
    """Parse `512,2k`."""
    try:
        return tuple(sorted({_length(word) for word in _words(text)}))
    except ValueError as error:
        raise UsageError(f"Invalid prompt lengths: '{text}'.", remedy="Write --lengths 512,2048,4k.") from error


def _length(word: str) -> int:
    value = int(word[:-1]) * 1024 if word[-1:] in "kK" and word[:-1] else int(word)
    if value <= 0:
        raise ValueError(word)
    return value


def parse_prefixes(text: str) -> tuple[int, ...]:
    """Parse `512,1536,4k`, far enough apart that no scored token lies in two of them."""
    found = parse_lengths(text)
    apart = QUICK.quality_scored
    if any(after - before <= apart for before, after in pairwise(found)):
        raise UsageError(f"Prefixes must be over {apart} tokens apart.", remedy="Write --prefixes 512,1536,4k.")
    return found


def parse_fills(text: str) -> tuple[int, ...]:
    """Parse `0,2k,4096`: tokens in the cache before a rate is measured."""
    return tuple(sorted({0 if word == "0" else parse_lengths(word)[0] for word in _words(text)}))


_UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def parse_size(text: str) -> int:
    """Parse `16GB`, `900 MB` or `1.5G`, in powers of 1024."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])i?B?\s*", text, re.I)
    if not match or not float(match[1]):
        raise UsageError(f"Invalid memory size: '{text}'.", remedy="Write --budget 16GB, or --budget 900MB.")
    return round(float(match[1]) * _UNITS[f"{match[2].upper()}B"])


def parse_depths(text: str) -> tuple[float, ...]:
    """Parse `0.1,0.5` or `10%,50%`."""
    try:
        depths = {float(word.rstrip("%")) / (100 if word.endswith("%") else 1) for word in _words(text)}
    except ValueError as error:
        raise UsageError(f"Invalid depths: '{text}'.", remedy="Write --depths 0.1,0.5,0.9.") from error
    if any(not 0 <= depth <= 1 for depth in depths):
        raise UsageError("Depths must be between 0 (first) and 1 (last).", remedy="Write --depths 0.1,0.5,0.9.")
    return tuple(sorted(depths))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def labelled(profile: Settings, chosen: Settings) -> Settings:
    """Call the profile custom if what is measured has changed; pairs, stages, budgets and threads do not count."""
    free = replace(
        chosen,
        pairs=profile.pairs,
        stages=profile.stages,
        budgets=profile.budgets,
        plan_context=profile.plan_context,
        threads=profile.threads,
    )
    return chosen if free == profile else replace(chosen, profile="custom")
