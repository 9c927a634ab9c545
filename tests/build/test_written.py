"""Rows of a cache that one run kept and another reads in their place. On one CPU the same way gives the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tqforge.adapters.llama.api.measure import Trace
from tqforge.adapters.llama.api.model import ContextSpec, Tokenize
from tqforge.adapters.llama.client import Child
from tqforge.errors import LoadError

TEXT = "The engine measures what it writes into its cache, and reads it back a little later."
LAYERS = 30
PAIRS = ["tq3_0/tq3_0", "q8_0/tq3_0", "f16/f16"]


class Runs:
    """Two batches and three single tokens of a text, traced again and again."""

    def __init__(self, child: Child, folder: Path) -> None:
        self._child, self._save = child, folder / "logits.npy"
        self._tokens = child.ask(Tokenize(texts=(TEXT,)), timeout=60).tokens[0][:12]

    def trace(self, pair: str, **folders: Path) -> tuple[np.ndarray[Any, Any], list[tuple[str, float, float]]]:
        k, v = pair.split("/")
        spec = ContextSpec(k=k, v=v, n_ctx=256, n_batch=8, threads=1)
        batches = (self._tokens[:8], self._tokens[8:])
        request = Trace(spec=spec, batches=batches, steps=4, forced=self._tokens[:4], save=self._save, **folders)
        reply = self._child.ask(request, timeout=300)
        return np.load(self._save), list(reply.written)


@pytest.fixture
def runs(child: Child, tmp_path: Path) -> Runs:
    return Runs(child, tmp_path)


@pytest.fixture
def caches(tmp_path: Path) -> Path:
    folder = tmp_path / "caches"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_kept_is_what_is_read(runs: Runs, caches: Path, pair: str) -> None:
    free, nothing = runs.trace(pair)
    kept, _ = runs.trace(pair, keep=caches)
    same, written = runs.trace(pair, follow=caches)
    assert nothing == []
    assert np.array_equal(free, kept)
    assert np.array_equal(free, same)
    assert sorted(path.name for path in caches.iterdir()) == ["0.npz", "12.npz", "13.npz", "14.npz", "8.npz"]
    assert len(written) == 2 * LAYERS
    assert all(here == there for _, here, there in written)
    largest = {"tq3_0": 0.03, "q8_0": 1e-4, "f16": 1e-6}
    for name, here, _ in written:
        kind = pair.split("/")[name.startswith("cache_v")]
        assert 0 < here < largest[kind], name


def test_rows_of_another_run_are_noticed_and_read(runs: Runs, caches: Path) -> None:
    free, _ = runs.trace("tq3_0/tq3_0", keep=caches)
    with np.load(caches / "8.npz") as kept:
        rows = dict(kept)
    rows["cache_v_l3"] = rows["cache_v_l3"][::-1].copy()
    np.savez(caches / "8.npz", **rows)
    moved, written = runs.trace("tq3_0/tq3_0", follow=caches)
    assert np.array_equal(free[:8], moved[:8])
    assert not np.allclose(free[8:], moved[8:])
    upto = {f"cache_{side}_l{layer}" for side in "kv" for layer in range(4)}
    assert {name for name, here, there in written if there > 2 * here} & upto == {"cache_v_l3"}


def test_rows_that_were_not_kept_are_an_error(runs: Runs, caches: Path) -> None:
    runs.trace("q8_0/tq3_0", keep=caches)
    with np.load(caches / "8.npz") as kept:
        rows = dict(kept)
    del rows["cache_k_l2"]
    np.savez(caches / "8.npz", **rows)
    with pytest.raises(LoadError, match="cache_k_l2: its rows were not kept"):
        runs.trace("q8_0/tq3_0", follow=caches)
    np.savez(caches / "8.npz")
    with pytest.raises(LoadError, match="No cache rows were kept"):
        runs.trace("q8_0/tq3_0", follow=caches)


def test_rows_of_another_type_are_an_error(runs: Runs, caches: Path) -> None:
    runs.trace("q8_0/tq3_0", keep=caches)
    with pytest.raises(LoadError, match=r"cache_k_l0: a kept row has \d+ bytes"):
        runs.trace("tq3_0/tq3_0", follow=caches)
    assert runs.trace("tq3_0/tq3_0")[0].shape[0] == 15, "the child goes on"
