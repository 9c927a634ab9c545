"""Contexts of all pairs of one library, open at the same time so that measurements can take turns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters.llama.api.measure import BenchTime, FillBench, OpenBench, RunBench
from tqforge.adapters.llama.api.model import CheckOrigin, LoadModel
from tqforge.adapters.llama.client import Child, search_path
from tqforge.core.pair import F16, Pair
from tqforge.verify.pairs import check_pair
from tqforge.verify.session import Session
from tqforge.verify.settings import N_BATCH


@dataclass(frozen=True)
class BenchContexts:
    """One open context per pair. build: empty for the library under test, else the name of the other build."""

    build: str
    child: Child
    pairs: tuple[Pair, ...]
    cpus: tuple[int, ...]


def own(session: Session, n_ctx: int) -> BenchContexts:
    """Open all pairs of the run in the library under test."""
    return _open(session, "", session.model("speed"), session.settings.with_control, n_ctx)


def second_build(session: Session, folder: Path, n_ctx: int) -> BenchContexts:
    """Open the second build with the pairs that contain tq3_0, and f16 as the control.

    Raises LoadError when a library from another folder was loaded, or when it lacks a type.
    """
    log = session.folder / "llama-compared.log"
    child = Child(library=folder, bindings=session.target.bindings, log=log, env=search_path(folder))
    try:
        child.stage = "speed"
        child.ask(CheckOrigin(folder=folder), timeout=60)
        pairs = tuple(p for p in session.settings.with_control if p == F16 or p.has_tq3_0)
        for pair in pairs:
            check_pair(pair, session.facts, child.loaded.blocks())
        session.ask(child, LoadModel(path=session.facts.path, gpu_layers=session.gpu_layers))
        return _open(session, name_of(folder), child, pairs, n_ctx)
    except BaseException:
        child.close()
        raise


def name_of(folder: Path) -> str:
    """Return a short name for a library folder: its own, or the parent's of `bin` and `lib`."""
    return folder.parent.name if folder.name in ("bin", "lib") else folder.name


def _open(session: Session, build: str, child: Child, pairs: Sequence[Pair], n_ctx: int) -> BenchContexts:
    contexts = tuple(session.context(pair, n_ctx) for pair in pairs)
    opened = session.ask(child, OpenBench(contexts=contexts, threads=session.settings.threads))
    return BenchContexts(build, child, tuple(pairs), opened.cpus)


def time(
    session: Session, contexts: BenchContexts, index: int, keep: int, tokens: Sequence[int], *, single: bool
) -> BenchTime:
    """Return the wall and CPU seconds of `tokens` after the first `keep`."""
    request = RunBench(index=index, keep=keep, tokens=tuple(tokens), single=single)
    return session.ask(contexts.child, request, lambda _done: None)


def fill(session: Session, contexts: BenchContexts, index: int, tokens: Sequence[int], snapshots: Path | None) -> None:
    """Fill a context with `tokens`, from the folder of snapshots if it has them, else by evaluating them."""
    state = None
    if snapshots:
        snapshots.mkdir(parents=True, exist_ok=True)
        state = snapshots / state_name(session.model_sha256, contexts.pairs[index], tokens)
    request = FillBench(index=index, tokens=tuple(tokens), state=state)
    session.ask(contexts.child, request, lambda _done: None)


def state_name(model_sha256: str, pair: Pair, tokens: Sequence[int]) -> str:
    """Return the file name of a snapshot: model, types and text; the build does not matter for speed."""
    key = json.dumps([model_sha256, pair.k, pair.v, N_BATCH, list(tokens)])
    return f"{pair.k}-{pair.v}-{len(tokens)}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.state"
