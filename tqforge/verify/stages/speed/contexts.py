"""One library with a context per pair, all open at once: what a measurement of speed takes turns with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqforge.adapters.llama.client import Child, search_path
from tqforge.core.pair import F16, Pair
from tqforge.verify.pairs import check_pair
from tqforge.verify.session import Session
from tqforge.verify.settings import N_BATCH


@dataclass(frozen=True)
class Lane:
    """`build` is empty for the library under test, else the name that the other one goes by."""

    build: str
    child: Child
    pairs: tuple[Pair, ...]
    cpus: tuple[int, ...]


def own(session: Session, n_ctx: int) -> Lane:
    """All pairs of the run."""
    return _open(session, "", session.model("speed"), session.settings.with_control, n_ctx)


def beside(session: Session, folder: Path, n_ctx: int) -> Lane:
    """The other library, with the pairs that hold tq3_0 and f16 as its control: stock pairs say nothing of the series.

    Raises LoadError when it is not the library of that folder that was loaded, or lacks a type.
    """
    log = session.folder / "llama-beside.log"
    child = Child(library=folder, bindings=session.target.bindings, log=log, env=search_path(folder))
    try:
        child.stage = "speed"
        child.call("only_from", {"folder": str(folder)}, timeout=60)
        pairs = tuple(p for p in session.settings.with_control if p == F16 or p.has_tq3_0)
        for pair in pairs:
            check_pair(pair, session.facts, session.blocks(child))
        args = {"path": str(session.facts.path), "gpu_layers": session.gpu_layers}
        child.call("model", args, timeout=session.settings.timeout)
        return _open(session, name_of(folder), child, pairs, n_ctx)
    except BaseException:
        child.close()
        raise


def name_of(folder: Path) -> str:
    """What a library folder goes by: `bin` and `lib` say nothing."""
    return folder.parent.name if folder.name in ("bin", "lib") else folder.name


def _open(session: Session, build: str, child: Child, pairs: Sequence[Pair], n_ctx: int) -> Lane:
    settings = session.settings
    contexts = [session.context(pair, n_ctx) for pair in pairs]
    args = {"contexts": contexts, "threads": settings.threads}
    opened = child.call("bench_open", args, timeout=settings.timeout)
    return Lane(build, child, tuple(pairs), tuple(opened["cpus"]))


def time(session: Session, lane: Lane, index: int, keep: int, tokens: Sequence[int], *, single: bool) -> dict[str, Any]:
    """Wall and CPU seconds of `tokens` after the first `keep`."""
    args = {"index": index, "keep": keep, "tokens": list(tokens), "single": single}
    return lane.child.call("bench_run", args, timeout=session.settings.timeout, tick=lambda _done: None)


def fill(session: Session, lane: Lane, index: int, tokens: Sequence[int]) -> None:
    """Let the context hold `tokens`: taken from the folder of filled caches, or evaluated and put there."""
    state = ""
    if session.fills:
        session.fills.mkdir(parents=True, exist_ok=True)
        state = str(session.fills / state_name(session.model_sha256, lane.pairs[index], tokens))
    args = {"index": index, "tokens": list(tokens), "state": state}
    lane.child.call("bench_fill", args, timeout=session.settings.timeout, tick=lambda _done: None)


def state_name(model_sha256: str, pair: Pair, tokens: Sequence[int]) -> str:
    """Names what fills a cache: model, types, text. Not the build: for speed only the layout of the types counts."""
    key = json.dumps([model_sha256, pair.k, pair.v, N_BATCH, list(tokens)])
    return f"{pair.k}-{pair.v}-{len(tokens)}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.state"
