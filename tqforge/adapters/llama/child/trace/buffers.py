"""What llama.cpp allocated, by its own log: weights, cache and compute buffer, to a hundredth of a MiB. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_MIB = 1024 * 1024
_BUFFER = re.compile(r"(\S+) +(model|compute|output) buffer size = +([\d.]+) MiB")
_CACHE = re.compile(r"llama_kv_cache: size = +([\d.]+) MiB \( *(\d+) cells, +(\d+) layers")
_KIND = re.compile(r"creating +(non-SWA|SWA) KV cache")


@dataclass(frozen=True)
class Cache:
    """One part of the KV cache: all layers, or those with a sliding window."""

    sliding: bool
    cells: int
    layers: int
    bytes: int


@dataclass
class Buffers:
    """Sizes in bytes; `compute` holds the output buffer too."""

    weights: int = 0
    compute: int = 0
    caches: list[Cache] = field(default_factory=list)


def read(lines: Iterable[str]) -> Buffers:
    """From the lines of one load, of one context, or of both. A size that is logged again replaces the first."""
    found, sizes, sliding = Buffers(), dict[tuple[str, str], int](), False
    for line in lines:
        if match := _KIND.search(line):
            sliding = match[1] == "SWA"
        elif match := _CACHE.search(line):
            found.caches.append(Cache(sliding, int(match[2]), int(match[3]), round(float(match[1]) * _MIB)))
        elif match := _BUFFER.search(line):
            sizes[match[1], match[2]] = round(float(match[3]) * _MIB)
    found.weights = sum(size for (_, kind), size in sizes.items() if kind == "model")
    found.compute = sum(size for (_, kind), size in sizes.items() if kind != "model")
    return found
