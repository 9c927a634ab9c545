"""What all stages of one run share: the library, the model, the child, and how far the run is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqforge.adapters.console import Meter, Output
from tqforge.adapters.gguf_io import ModelFacts
from tqforge.adapters.llama.client import Child, search_path
from tqforge.core.pair import Pair
from tqforge.report.schema.provenance import BuildProvenance
from tqforge.report.schema.stages import Stage
from tqforge.verify.pairs import check_pair
from tqforge.verify.programs import Workshop
from tqforge.verify.settings import N_BATCH, Settings


class SkippedError(Exception):
    """A stage cannot run here, for this reason; nothing is wrong."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True, kw_only=True)
class Target:
    """The library under test. `checkout` and `expected_tree` are None for a library given by its path."""

    library: Path
    bindings: Path
    keys: BuildProvenance
    gpu: bool
    checkout: Path | None = None
    expected_tree: str | None = None
    workshop: Workshop | None = None  # makes further parts of the build; None for a library given by its path
    beside: Path | None = None  # the library folder of another build that takes its turns in stage speed
    fills: Path | None = None  # folder where stage speed keeps filled caches


@dataclass(kw_only=True)
class Session:
    """One run. Stages ask it for a living child; one that died is replaced at the next question."""

    out: Output
    target: Target
    settings: Settings
    facts: ModelFacts
    folder: Path
    model_sha256: str = ""
    env: dict[str, str | None] = field(default_factory=dict)
    fills: Path | None = None
    _child: Child | None = None
    _model: dict[str, Any] = field(default_factory=dict)
    _children: int = 0
    _on_partial: Callable[[Stage], None] | None = None

    def child(self, stage: str) -> Child:
        """The child with its library loaded, named for what it is used for."""
        if self._child is None or not self._child.alive:
            self._children += 1
            log = self.folder / f"llama-{self._children}.log"
            self._model = {}
            moved = {} if self.target.checkout else search_path(self.target.library)  # given by its path
            env = {**moved, **self.env}
            self._child = Child(library=self.target.library, bindings=self.target.bindings, log=log, env=env)
        self._child.stage = stage
        return self._child

    def model(self, stage: str) -> Child:
        """The child with the model loaded too. All pairs of the run are checked before that."""
        child = self.child(stage)
        if not self._model:
            for pair in self.settings.with_control:
                check_pair(pair, self.facts, self.blocks(child))
            layers = self.gpu_layers
            args = {"path": str(self.facts.path), "gpu_layers": layers}
            self._model = child.call("model", args, timeout=self.settings.timeout)
        return child

    @property
    def gpu_layers(self) -> int:
        return self.settings.gpu_layers if self.target.gpu else 0

    @property
    def model_says(self) -> dict[str, Any]:
        return self._model

    @staticmethod
    def blocks(child: Child) -> dict[str, int]:
        """Block size by type name, from the loaded library."""
        return {info["name"]: int(info["block"]) for info in child.loaded["types"]}

    @staticmethod
    def sizes(child: Child) -> dict[str, tuple[int, int]]:
        """(values, bytes) of a block by type name, from the loaded library."""
        return {info["name"]: (int(info["block"]), int(info["bytes"])) for info in child.loaded["types"]}

    def context(self, pair: Pair, n_ctx: int) -> dict[str, Any]:
        """The arguments of a context; equal for all pairs but for the types."""
        return {"k": pair.k, "v": pair.v, "n_ctx": n_ctx, "n_batch": N_BATCH, "threads": self.settings.threads}

    def tokenize(self, child: Child, texts: Sequence[str], *, special: bool = False) -> list[list[int]]:
        reply = child.call("tokenize", {"texts": list(texts), "special": special}, timeout=self.settings.timeout)
        return [list(tokens) for tokens in reply["tokens"]]

    @contextmanager
    def meter(self, title: str, total: float) -> Iterator[Meter]:
        with self.out.meter(title, total) as meter:
            yield meter

    def partial(self, stage: Stage) -> None:
        """Hand over what a long stage has so far: an interrupted run still reports it."""
        if self._on_partial:
            self._on_partial(stage)

    def on_partial(self, action: Callable[[Stage], None] | None) -> None:
        self._on_partial = action

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def padded(n_ctx: int) -> int:
    """llama.cpp rounds a context up to 256 cells; ask for what it gives."""
    return -(-n_ctx // 256) * 256
