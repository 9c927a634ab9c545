"""Read what llama.cpp allocated from its log: weights, cache and compute buffers, to a hundredth of a MiB."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from tqforge.adapters.llama.api.cache import CachePart

_MIB = 1024 * 1024
_BUFFER = re.compile(r"(\S+) +(model|compute|output) buffer size = +([\d.]+) MiB")
_CACHE = re.compile(r"llama_kv_cache: size = +([\d.]+) MiB \( *(\d+) cells, +(\d+) layers")
_KIND = re.compile(r"creating +(non-SWA|SWA) KV cache")


@dataclass
class Buffers:
    """Allocated bytes; `compute` includes the output buffer."""

    weights: int = 0
    compute: int = 0
    caches: list[CachePart] = field(default_factory=list)


def read(lines: Iterable[str]) -> Buffers:
    """Read the lines of a load, of a context, or of both. A size that is logged again replaces the first."""
    found, sizes, sliding = Buffers(), dict[tuple[str, str], int](), False
    for line in lines:
        if match := _KIND.search(line):
            sliding = match[1] == "SWA"
        elif match := _CACHE.search(line):
            size = round(float(match[1]) * _MIB)
            found.caches.append(CachePart(sliding=sliding, cells=int(match[2]), layers=int(match[3]), bytes=size))
        elif match := _BUFFER.search(line):
            sizes[match[1], match[2]] = round(float(match[3]) * _MIB)
    found.weights = sum(size for (_, kind), size in sizes.items() if kind == "model")
    found.compute = sum(size for (_, kind), size in sizes.items() if kind != "model")
    return found


def peak_rss() -> int:
    """Return the peak resident set size of this process in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024
