"""The same rates by upstream's llama-bench: another program, another prompt, the same library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqforge.adapters import proc
from tqforge.domain.model import Pair
from tqforge.domain.verify.rates import Phase, Sample
from tqforge.errors import LoadError

PROGRAM = "llama-bench"


def arguments(
    program: Path, model: Path, pair: Pair, depths: Sequence[int], *, prefill: int, decode: int, threads: int, gpu: int
) -> list[str]:
    """One run of llama-bench for one pair: every depth once."""
    words = [str(program), "-m", str(model), "-o", "json", "-r", "1", "-fa", "1", "-ctk", pair.k, "-ctv", pair.v]
    words += ["-p", str(prefill), "-n", str(decode), "-d", ",".join(map(str, depths))]
    return [*words, "-t", str(threads), "-ngl", str(gpu)]


def samples(document: str, pair: str, number: int) -> list[Sample]:
    """What one run printed. Raises LoadError when that is no list of tests."""
    try:
        tests: list[dict[str, Any]] = json.loads(document)
        return [_sample(test, pair, number) for test in tests]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise LoadError(f"{PROGRAM} printed something else than its results: {error}") from error


def _sample(test: dict[str, Any], pair: str, number: int) -> Sample:
    phase: Phase = "decode" if test["n_gen"] else "prefill"
    tokens = int(test["n_gen"] or test["n_prompt"])
    return Sample(pair, int(test["n_depth"]), phase, number, tokens, test["samples_ns"][0] / 1e9)


def run(argv: Sequence[str], *, library: Path, timeout: float) -> str:
    """Standard output of a run. Raises LoadError with the program's own words."""
    search = "DYLD_LIBRARY_PATH" if (library / "libllama.dylib").exists() else "LD_LIBRARY_PATH"
    try:
        return proc.run(argv, env={search: str(library)}, timeout=timeout).stdout
    except proc.ProcessError as error:
        raise LoadError(f"{PROGRAM} failed: {error.done.tail(3)}", where=" ".join(argv)) from error
    except TimeoutError as error:
        raise LoadError(str(error), where=" ".join(argv)) from error
