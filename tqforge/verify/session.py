"""What all stages of one run share: the library, the model, the child, and how far the run is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters.console import Output
from tqforge.adapters.gguf_io import ModelFacts
from tqforge.adapters.llama.api.messages import Reply, Request
from tqforge.adapters.llama.api.model import ContextSpec, LoadModel, ModelReport, Tokenize
from tqforge.adapters.llama.client import Child, Tick, search_path
from tqforge.core.pair import Pair
from tqforge.core.reporter import Meter
from tqforge.report.schema.provenance import BuildProvenance
from tqforge.report.schema.stages import Stage
from tqforge.verify.pairs import check_pair
from tqforge.verify.programs import BuildPrograms
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
    provenance: BuildProvenance
    gpu: bool
    checkout: Path | None = None
    expected_tree: str | None = None
    programs: BuildPrograms | None = None  # makes further parts of the build; None for a library given by its path
    compare_with: Path | None = None  # library folder of a second build that stage speed measures too
    cache_dir: Path | None = None  # folder where stage speed keeps snapshots of filled caches


class Session:
    """One run over one model. A child process that died is replaced when a stage asks for the next one.

    facts: the model file. folder: receives logs and temporary files. env: changes to the child's environment.
    """

    def __init__(
        self,
        *,
        out: Output,
        target: Target,
        settings: Settings,
        facts: ModelFacts,
        folder: Path,
        model_sha256: str = "",
        env: dict[str, str | None] | None = None,
    ) -> None:
        self.out, self.target, self.settings = out, target, settings
        self.facts, self.folder, self.model_sha256 = facts, folder, model_sha256
        self._env = env or {}
        self._child: Child | None = None
        self._model: ModelReport | None = None
        self._children = 0
        self._on_partial: Callable[[Stage], None] | None = None

    def child(self, stage: str) -> Child:
        """Return a child process with the library loaded; `stage` is named in its errors."""
        if self._child is None or not self._child.alive:
            self._children += 1
            log = self.folder / f"llama-{self._children}.log"
            self._model = None
            moved = {} if self.target.checkout else search_path(self.target.library)  # given by its path
            env = {**moved, **self._env}
            self._child = Child(library=self.target.library, bindings=self.target.bindings, log=log, env=env)
        self._child.stage = stage
        return self._child

    def model(self, stage: str) -> Child:
        """Return a child process with the model loaded; all pairs of the run are checked before that."""
        child = self.child(stage)
        if self._model is None:
            for pair in self.settings.with_control:
                check_pair(pair, self.facts, child.loaded.blocks())
            request = LoadModel(path=self.facts.path, gpu_layers=self.gpu_layers)
            self._model = child.ask(request, timeout=self.settings.timeout)
        return child

    @property
    def gpu_layers(self) -> int:
        return self.settings.gpu_layers if self.target.gpu else 0

    @property
    def model_report(self) -> ModelReport:
        """What the library says about the loaded model. Call `model` first."""
        assert self._model is not None
        return self._model

    def context(self, pair: Pair, n_ctx: int, *, n_batch: int = N_BATCH, **more: bool) -> ContextSpec:
        """Return the parameters of a context; only the types differ between pairs."""
        return ContextSpec(k=pair.k, v=pair.v, n_ctx=n_ctx, n_batch=n_batch, threads=self.settings.threads, **more)

    def ask(self, child: Child, request: Request[Reply], tick: Tick | None = None) -> Reply:
        """Return the reply to a request within the time limit of the settings."""
        return child.ask(request, timeout=self.settings.timeout, tick=tick)

    def tokenize(self, child: Child, texts: Sequence[str], *, special: bool = False) -> list[list[int]]:
        reply = self.ask(child, Tokenize(texts=tuple(texts), special=special))
        return [list(tokens) for tokens in reply.tokens]

    @contextmanager
    def meter(self, title: str, total: float) -> Iterator[Meter]:
        with self.out.meter(title, total) as meter:
            yield meter

    def partial(self, stage: Stage) -> None:
        """Record what a long stage has so far, so that an interrupted run still reports it."""
        if self._on_partial:
            self._on_partial(stage)

    def on_partial(self, action: Callable[[Stage], None] | None) -> None:
        self._on_partial = action

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def padded(n_ctx: int) -> int:
    """Return the context size that llama.cpp makes of this one: a multiple of 256 cells."""
    return -(-n_ctx // 256) * 256
