"""Measure the same rates with upstream's llama-bench."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqforge.adapters import proc
from tqforge.core.pair import Pair
from tqforge.errors import LoadError
from tqforge.report.schema.base import Phase
from tqforge.verify.stages.speed.rates import Sample

PROGRAM = "llama-bench"
#: Seconds for one pair with all its depths: stock quantized pairs fill a deep cache slowly.
TIMEOUT = 3600.0


def arguments(
    program: Path,
    model: Path,
    pair: Pair,
    depths: Sequence[int],
    *,
    prefill: int,
    decode: int,
    threads: int,
    gpu: int,
    cpus: Sequence[int] = (),
) -> list[str]:
    """Return the command line for one pair at every depth, pinned to `cpus` where `taskset` exists."""
    pinned = ["taskset", "-c", ",".join(map(str, cpus))] if cpus and shutil.which("taskset") else []
    words = [str(program), "-m", str(model), "-o", "json", "-r", "1", "-fa", "1", "-ctk", pair.k, "-ctv", pair.v]
    words += ["-p", str(prefill), "-n", str(decode), "-pg", f"{prefill},{decode}", "-d", ",".join(map(str, depths))]
    return [*pinned, *words, "-t", str(threads), "-ngl", str(gpu)]


def samples(document: str, pair: Pair, number: int) -> list[Sample]:
    """Parse the output of one run. Raises LoadError if it is not a list of tests."""
    try:
        tests: list[dict[str, Any]] = json.loads(document)
        return [_sample(test, pair, number) for test in tests]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise LoadError(f"{PROGRAM} printed something else than its results: {error}") from error


def _sample(test: dict[str, Any], pair: Pair, number: int) -> Sample:
    read, made = int(test["n_prompt"]), int(test["n_gen"])
    phase: Phase = "end-to-end" if read and made else "decode" if made else "prefill"
    return Sample(pair, int(test["n_depth"]), phase, number, read + made, test["samples_ns"][0] / 1e9)


def run(argv: Sequence[str], *, library: Path, timeout: float) -> str:
    """Run the program and return its output. Raises LoadError with its last lines."""
    search = "DYLD_LIBRARY_PATH" if (library / "libllama.dylib").exists() else "LD_LIBRARY_PATH"
    try:
        return proc.run(argv, env={search: str(library)}, timeout=timeout).stdout
    except proc.ProcessError as error:
        raise LoadError(f"{PROGRAM} failed: {error.done.tail(3)}", where=" ".join(argv)) from error
    except TimeoutError as error:
        raise LoadError(str(error), where=" ".join(argv)) from error
