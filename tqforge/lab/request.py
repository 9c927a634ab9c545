"""What the lab's child process is asked, and what it answers: one JSON file in, one JSON line per trial out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Trial(_Frozen):
    """A codec for K and one for V, by their names in the registry."""

    k: str
    v: str

    def __str__(self) -> str:
        return f"{self.k}/{self.v}"


class Request(_Frozen):
    """One model, one text, several trials. `windows` are (first scored token, count)."""

    library: Path
    bindings: Path
    model: Path
    scratch: Path
    head_k: int
    head_v: int
    text: str
    windows: tuple[tuple[int, int], ...]
    threads: int
    trials: tuple[Trial, ...]


class Scores(_Frozen):
    """The scored tokens of one trial: KL from f16 in nats, surprise in nats, and whether the top token agrees."""

    trial: Trial
    kl: tuple[float, ...]
    nll: tuple[float, ...]
    same_top: tuple[bool, ...]
    seconds: float


@dataclass(frozen=True)
class Answer:
    """All of a run: `reference` is the surprise of the f16 cache itself."""

    reference: tuple[float, ...]
    scores: tuple[Scores, ...]
