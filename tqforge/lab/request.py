"""What the lab's child process is asked, and what it answers: one JSON file in, one JSON line per result out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tqforge.errors import CacheTypeError

_FLAGS = {"cal": "calibrated", "real": "real"}
_OPTION = re.compile(r"(first|recent)(\d+)")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Trial(_Frozen):
    """A codec for K and one for V, by their names in the registry.

    calibrated: keys are stored as s * (K - c) with vectors measured on another text. first, recent: how many tokens at
    the beginning and before the newest one stay exact. real: K and V are cache types of the library and its own code
    quantizes them, to compare the lab with the real thing.
    """

    k: str
    v: str
    calibrated: bool = False
    first: int = 0
    recent: int = 0
    real: bool = False

    @classmethod
    def parse(cls, text: str) -> Trial:
        """Read `K/V` or one codec for both, then options: `lm3-block/lm3-block+cal+first4+recent128`."""
        pair, *options = text.split("+")
        k, _, v = pair.partition("/")
        numbers = {}
        for option in options:
            match = _OPTION.fullmatch(option)
            if match:
                numbers[match[1]] = int(match[2])
            elif option not in _FLAGS:
                raise CacheTypeError(
                    f"Unknown option '+{option}' in '{text}'.", remedy="Options: +cal, +firstN, +recentN, +real."
                )
        flags = {name: option in options for option, name in _FLAGS.items()}
        return cls.model_validate({"k": k, "v": v or k} | flags | numbers)

    def __str__(self) -> str:
        flags = [f"+{option}" for option, name in _FLAGS.items() if getattr(self, name)]
        numbers = [f"+{name}{getattr(self, name)}" for name in ("first", "recent") if getattr(self, name)]
        return "".join([f"{self.k}/{self.v}", *flags, *numbers])


class Prompt(_Frozen):
    """A prompt with the chat template applied, and the words that the answer must hold."""

    text: str
    words: tuple[str, ...]


class Request(_Frozen):
    """One model and several trials. `windows` are (first scored token, count) in `text`.

    calibration: the text for calibrated trials and captured statistics. capture: also describe the keys and values.
    batch: tokens evaluated at once.
    """

    library: Path
    bindings: Path
    model: Path
    scratch: Path
    head_k: int
    head_v: int
    text: str
    windows: tuple[tuple[int, int], ...]
    calibration: str
    threads: int
    trials: tuple[Trial, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    prompt_trials: tuple[Trial, ...] = ()
    capture: bool = False
    batch: int = 512


class Scores(_Frozen):
    """The scored tokens of one trial: KL from f16 in nats, surprise in nats, and whether the top token agrees."""

    kind: Literal["scores"] = "scores"
    trial: Trial
    kl: tuple[float, ...]
    nll: tuple[float, ...]
    same_top: tuple[bool, ...]
    seconds: float


class Answers(_Frozen):
    """What the model said to each prompt of the request in one trial."""

    kind: Literal["answers"] = "answers"
    trial: Trial
    texts: tuple[str, ...]
    seconds: float


class LayerFacts(_Frozen):
    """K and V rows of one layer: norms, shape of the distribution, and how well codebooks fit.

    kurtosis: excess kurtosis over the values of a block of 32 scaled to unit rms, before and after the rotation of
    tq3_0. distortion: squared error over energy after that rotation, by bits, one rms per block of 32. zero_blocks:
    share of blocks of 32 whose values are all zero. attention_kl: mean KL in nats of the attention weights of the
    captured queries, by codec.
    """

    layer: int
    k_norm: float
    v_norm: float
    kurtosis: float
    kurtosis_rotated: float
    distortion: dict[int, float]
    zero_blocks: float
    attention_kl: dict[str, float]


class Capture(_Frozen):
    """What the cache of an uncompressed run looks like, layer by layer."""

    kind: Literal["capture"] = "capture"
    tokens: int
    layers: tuple[LayerFacts, ...]


Result = Annotated[Scores | Answers | Capture, Field(discriminator="kind")]
RESULT: TypeAdapter[Scores | Answers | Capture] = TypeAdapter(Result)
