"""Load the built library in a child process, look up `tq3_0`, and decode a few tokens."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqforge.adapters.llama.api.model import (
    ALL_LAYERS,
    ContextSpec,
    Extend,
    Generate,
    Loaded,
    LoadModel,
    Open,
    Tokenize,
)
from tqforge.adapters.llama.client import Child
from tqforge.build.stamp import LoadCheck
from tqforge.core.cache_types import TQ3_0
from tqforge.core.pair import Pair
from tqforge.core.reporter import Reporter
from tqforge.errors import CrashError, DownloadError, LoadError

_PROMPT = "The quick brown fox jumps over the lazy dog. The quick brown fox"
_NEW_TOKENS = 4
_N_CTX = 256
_TIMEOUT = 300.0  # the first launch on Metal compiles every kernel


@dataclass(frozen=True, kw_only=True)
class Request:
    """The library to load, and with what."""

    library: Path
    bindings: Path
    log: Path
    metal: bool
    threads: int


def run(request: Request, model: Callable[[], Path], reporter: Reporter) -> LoadCheck:
    """Run the smoke test. Raises LoadError or CrashError; without a model, decoding is skipped with the reason."""
    start = time.monotonic()
    with Child(library=request.library, bindings=request.bindings, log=request.log) as child:
        loaded = child.loaded
        types = tuple(sorted(loaded.blocks()))
        if TQ3_0 not in types:
            raise LoadError(
                f"The built library loads, but has no type '{TQ3_0}': it was built without the patches.",
                where=str(request.library),
                remedy=f"It knows: {', '.join(types)}. Check the series with `tqforge status`, then build again.",
            )
        try:
            path = model()
        except DownloadError as error:
            reason = f"Decoding was not tried, because the test model is not available: {error.what}"
            return _result(loaded, status="skipped", reason=reason)
        with reporter.meter("decoding"):
            made = _decode(child, request, path)
    seconds = time.monotonic() - start
    return _result(loaded, status="passed", tokens=made, model=path.name, seconds=seconds)


def _result(
    loaded: Loaded,
    *,
    status: Literal["passed", "skipped"],
    reason: str = "",
    tokens: int = 0,
    model: str = "",
    seconds: float = 0.0,
) -> LoadCheck:
    return LoadCheck(
        status=status,
        reason=reason,
        types=tuple(sorted(loaded.blocks())),
        symbols=loaded.declared,
        fields=loaded.fields,
        system=loaded.system,
        pair=str(Pair.both(TQ3_0)) if tokens else "",
        tokens=tokens,
        model=model,
        seconds=seconds,
    )


def _decode(child: Child, request: Request, model: Path) -> int:
    """Return how many tokens were decoded with a tq3_0 cache; the child raises for logits that are not finite."""
    child.stage = "decode"
    child.ask(LoadModel(path=model, gpu_layers=ALL_LAYERS if request.metal else 0), timeout=_TIMEOUT)
    spec = ContextSpec(k=TQ3_0, v=TQ3_0, n_ctx=_N_CTX, threads=request.threads)
    child.ask(Open(spec=spec), timeout=_TIMEOUT)
    tokens = child.ask(Tokenize(texts=(_PROMPT,)), timeout=_TIMEOUT).tokens[0]
    child.ask(Extend(keep=0, tokens=tokens), timeout=_TIMEOUT)
    made = child.ask(Generate(limit=_NEW_TOKENS), timeout=_TIMEOUT).tokens
    if not made:
        raise LoadError("The library decoded a prompt and then generated no token.", where=str(request.log))
    return len(tokens) + len(made)


def is_processor_fault(error: CrashError) -> bool:
    """Return whether the processor may have refused an instruction the compiler expected it to have.

    SIGILL is the usual signal. A hypervisor that hides AMX tiles answers `ldtilecfg` with a general protection
    fault, which Linux reports as SIGSEGV.
    """
    return error.signal in ("SIGILL", "SIGSEGV", "SIGBUS")
