"""Run trials on one model in a child process and collect what comes back."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tqforge.adapters import fs, proc
from tqforge.adapters.gguf_io import ModelFacts
from tqforge.errors import CrashError
from tqforge.lab.record import ModelRecord
from tqforge.lab.request import RESULT, Answers, Capture, Prompt, Request, Scores, Trial
from tqforge.verify import corpus
from tqforge.verify.stages.needle import chat_template, facts

#: Tokens before the scored ones, and the scored ones.
WINDOWS = ((768, 256),)
_CALIBRATION_TOKENS = 1500
_CHARACTERS_PER_TOKEN = 4
_NEEDLE_SEEDS = 3
_NEEDLE_CHARACTERS = (2000, 4000)
_DEPTH = 0.5
Step = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Where the library lies, and how the child runs."""

    library: Path
    bindings: Path
    folder: Path
    threads: int


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is measured: scored trials, trials that answer needle questions, statistics of keys and values."""

    trials: tuple[Trial, ...] = ()
    needles: tuple[Trial, ...] = ()
    capture: bool = False


def steps(wanted: Wanted) -> int:
    """Return the number of results of one model: the f16 reference comes before the scored trials."""
    return len(wanted.trials) + bool(wanted.trials) + len(wanted.needles) + wanted.capture


def measure(
    setup: Setup, model: ModelFacts, wanted: Wanted, *, parameters: int, sha256: str, step: Step
) -> ModelRecord:
    """Return everything that was asked for. Raises CrashError when the child died, with what it said last."""
    start = time.monotonic()
    prompts = tuple(needle_prompts(model)) if wanted.needles and model.chat_template else ()
    request = _request(setup, model, wanted, prompts)
    results = _child(setup, request, step)
    scores = [one for one in results if isinstance(one, Scores)]
    return ModelRecord(
        name=model.path.stem,
        file=model.path.name,
        sha256=sha256,
        architecture=model.arch,
        parameters=parameters,
        head_k=model.head_k,
        head_v=model.head_v,
        prompts=prompts,
        reference=scores[0] if scores else None,
        scores=tuple(scores[1:]),
        answers=tuple(one for one in results if isinstance(one, Answers)),
        capture=next((one for one in results if isinstance(one, Capture)), None),
        seconds=time.monotonic() - start,
    )


def _request(setup: Setup, model: ModelFacts, wanted: Wanted, prompts: tuple[Prompt, ...]) -> Request:
    text = corpus.quality().content
    return Request(
        library=setup.library,
        bindings=setup.bindings,
        model=model.path,
        scratch=setup.folder,
        head_k=model.head_k,
        head_v=model.head_v,
        text=text,
        windows=WINDOWS,
        calibration=text[-_CALIBRATION_TOKENS * _CHARACTERS_PER_TOKEN :],  # far behind what is scored
        threads=setup.threads,
        trials=wanted.trials,
        prompts=prompts,
        prompt_trials=wanted.needles if prompts else (),
        capture=wanted.capture,
    )


def _child(setup: Setup, request: Request, step: Step) -> list[Scores | Answers | Capture]:
    path = setup.folder / "lab-request.json"
    fs.write_text(path, request.model_dump_json())
    found: list[Scores | Answers | Capture] = []
    other: list[str] = []

    def line(text: str) -> None:
        if not text.startswith('{"kind"'):
            other.append(text)
            return
        found.append(RESULT.validate_json(text))
        step(f"{len(found)}: {_title(found[-1])}")

    done = proc.run(
        [sys.executable, "-P", "-m", "tqforge.lab.child.process", path], check=False, on_line=line, log=None
    )
    if not done.ok:
        how = f"died of {done.signal_name}" if done.signal_name else f"ended with exit status {done.code}"
        last = next((text for text in reversed(other) if text.strip()), "no output")
        raise CrashError(f"The lab's child process {how}: {last}", signal=done.signal_name, where=str(path))
    return found


def _title(result: Scores | Answers | Capture) -> str:
    return "captured keys and values" if isinstance(result, Capture) else str(result.trial)


def needle_prompts(model: ModelFacts) -> Iterable[Prompt]:
    """Yield prompts of two sizes with one fact each in the middle of the text."""
    template, hay = chat_template.split(model), corpus.hay().content
    for size in _NEEDLE_CHARACTERS:
        for seed in range(_NEEDLE_SEEDS):
            fact = facts.fact(seed)
            cut = hay.index(". ", int(size * _DEPTH)) + 1
            text = f"{hay[:cut]} {fact.sentence}{hay[cut:size]}"
            message = f"{facts.TASK}\n\n{text}\n\n{facts.QUESTION}"
            yield Prompt(text=f"{template.head}{message}{template.tail}", words=fact.words)
