"""Two facts nobody can guess, hidden in a text, asked for in the model's own chat format.

f16 answers first: where it fails, the cell says nothing about the other pairs. Without a needle nothing may be found.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tqforge.adapters.llama.api.model import Extend, Generate, Open
from tqforge.adapters.llama.client import Child, Tick
from tqforge.core.pair import F16, Pair
from tqforge.core.reporter import Meter
from tqforge.errors import CrashError, TqforgeError
from tqforge.report.schema.base import CellOutcome, NeedleResult
from tqforge.report.schema.rows import NeedleCell
from tqforge.report.schema.stages import NeedleStage
from tqforge.verify import corpus
from tqforge.verify.pairs import check_lengths
from tqforge.verify.session import Session, SkippedError, padded
from tqforge.verify.stages.needle import chat_template, scoring
from tqforge.verify.stages.needle import grid as needleplan
from tqforge.verify.stages.needle.facts import QUESTION, TASK, fact
from tqforge.verify.stages.needle.grid import Evaluation, Question
from tqforge.verify.stages.needle.prompt import Frame, Hay, Tokens

_SHARED = (
    "For every pair the text before a needle is evaluated once and kept for all questions that begin with it; what "
    "follows is removed from the cache after each answer. Order, batch size and threads are the same for all pairs."
)
_SPARED = "Where f16 itself did not find both facts, the other pairs were not asked: such a cell is inconclusive."
_FRESH = "Every question starts from an empty cache. Batch size and threads are the same for all pairs."


@dataclass(frozen=True)
class _Grid:
    """The plan of one pair; only f16 is asked without a needle."""

    plan: list[Evaluation]
    n_ctx: int
    shared: bool
    template_sha256: str

    def cost(self, pairs: Sequence[Pair]) -> int:
        return sum(evaluation.cost for evaluation in self.plan) * len(pairs)


class _Progress:
    """Tokens evaluated so far, and their cells."""

    def __init__(self, session: Session, grid: _Grid, meter: Meter) -> None:
        self.cells: list[NeedleCell] = []
        self._session, self._grid, self._meter = session, grid, meter
        self._spent, self._note = 0, ""

    def tick(self, tokens: int) -> None:
        self._meter.update(self._spent + tokens, self._note)

    def answered(self, question: Question) -> bool:
        """Return whether f16 found the whole fact, without which no other pair can be judged."""
        key = (question.length, question.depth, question.seed)
        hits = (cell for cell in self.cells if cell.control == "f16" and cell.outcome is CellOutcome.HIT)
        return any((cell.length, cell.depth, cell.seed) == key for cell in hits)

    def spend(self, cost: int) -> None:
        self._spent += cost
        self.tick(0)

    def add(self, cell: NeedleCell) -> None:
        self._note = f"{cell.pair}, {cell.length} tokens, depth {cell.depth:g}: {cell.outcome}"
        self.cells.append(cell)
        self._session.partial(_stage(self._session, self._grid, self.cells))


def run(session: Session) -> NeedleStage:
    """Ask f16 the whole grid, then every other pair; hand over the cells so far after each one."""
    settings = session.settings
    check_lengths(settings.lengths, settings.answer_tokens, session.facts)
    if session.facts.chat_template is None:
        raise SkippedError("the model has no chat template", "Choose an instruct model with --model.")
    template = chat_template.split(session.facts)
    child = session.model("needle")
    grid = _grid(session, child, template)
    pairs = settings.with_control
    with session.meter("needle", grid.cost(pairs)) as meter:
        progress = _Progress(session, grid, meter)
        for pair in pairs:
            _ask_all(session, pair, grid, progress)
    return _stage(session, grid, progress.cells)


def _grid(session: Session, child: Child, template: chat_template.Template) -> _Grid:
    settings, facts = session.settings, session.facts
    around = [f"{template.head}{TASK}\n\n", f"\n\n{QUESTION}{template.tail}"]
    head, tail = session.tokenize(child, around, special=True)
    if session.model_report.adds_bos and facts.bos_id is not None and head[:1] != [facts.bos_id]:
        head = [facts.bos_id, *head]
    needles: dict[int, Tokens] = {
        seed: tuple(tokens)
        for seed, tokens in zip(
            settings.seeds,
            session.tokenize(child, [f" {fact(seed).sentence}" for seed in settings.seeds]),
            strict=True,
        )
    }
    hay = Hay.of(corpus.hay().content, lambda parts: session.tokenize(child, parts))
    frame = Frame(tuple(head), tuple(tail))
    asked = needleplan.questions(hay, frame, needles, settings.lengths, settings.depths)
    shared = not session.model_report.n_swa and not session.model_report.recurrent
    order = needleplan.shared_plan if shared else needleplan.fresh_plan
    return _Grid(
        plan=order(asked),
        n_ctx=padded(max(settings.lengths) + settings.answer_tokens),
        shared=shared,
        template_sha256=template.sha256,
    )


def _ask_all(session: Session, pair: Pair, grid: _Grid, progress: _Progress) -> None:
    """Ask one pair all questions. An error ends its context and is recorded as error, not as a miss."""
    child = session.model("needle")
    broken = ""
    try:
        session.ask(child, Open(spec=session.context(pair, grid.n_ctx)))
    except CrashError:
        raise
    except TqforgeError as error:
        broken = f"{error.what} {error.where}".strip()
    for evaluation in grid.plan:
        question = evaluation.question
        wanted = pair == F16 or (question.kind == "needle" and progress.answered(question))
        started = time.monotonic()
        cell: NeedleCell | None = None
        try:
            if broken:
                raise TqforgeError(broken)
            _grow(session, child, evaluation, progress.tick)
            if wanted:
                answer = _answer(session, child, evaluation, progress.tick)
                cell = cell_of(pair, question, answer=answer, seconds=time.monotonic() - started)
        except CrashError:
            raise
        except TqforgeError as error:
            broken = broken or error.what
            cell = cell_of(pair, question, error=error.what)
        progress.spend(evaluation.cost)
        if question.kind == "needle" or pair == F16:
            progress.add(cell or not_asked(pair, question))


def _grow(session: Session, child: Child, evaluation: Evaluation, tick: Tick) -> None:
    """Evaluate the prefix that later questions share, in the same steps for every pair."""
    if evaluation.trunk:
        session.ask(child, Extend(keep=evaluation.held, tokens=evaluation.trunk), tick)


def _answer(session: Session, child: Child, evaluation: Evaluation, tick: Tick) -> str:
    grown = len(evaluation.trunk)
    extend = Extend(keep=evaluation.held + grown, tokens=evaluation.branch)
    session.ask(child, extend, lambda tokens: tick(grown + tokens))
    return session.ask(child, Generate(limit=session.settings.answer_tokens)).text


def not_asked(pair: Pair, question: Question) -> NeedleCell:
    """Return the cell of a question that f16 did not answer, so that it was not asked."""
    cell = cell_of(pair, question)
    return cell.model_copy(update={"outcome": CellOutcome.INCONCLUSIVE, "score": None, "exact": None})


def cell_of(
    pair: Pair, question: Question, *, answer: str = "", seconds: float | None = None, error: str = ""
) -> NeedleCell:
    """Return the record of one question and its answer."""
    control: Literal["none", "f16", "no-needle"] = "f16" if pair == F16 else "none"
    verdict = scoring.score(answer, question.fact.words)
    return NeedleCell(
        pair=pair,
        control="no-needle" if question.kind == "no-needle" else control,
        facts=question.fact.words,
        fact_kind=question.fact.kind,
        length=question.length,
        tokens=question.prompt.length,
        depth=question.depth,
        seed=question.seed,
        position=question.prompt.shared,
        outcome=CellOutcome.ERROR if error else verdict.outcome,
        score=None if error else verdict.score,
        exact=None if error else verdict.exact,
        found=verdict.found,
        near_misses=() if error else verdict.near_misses,
        answer=answer,
        prompt_sha256=question.prompt.sha256,
        seconds=None if seconds is None else round(seconds, 3),
        error=error,
    )


def _stage(session: Session, grid: _Grid, cells: Sequence[NeedleCell]) -> NeedleStage:
    judged = scoring.judge(cells)
    summaries = scoring.summarize(judged, session.settings.with_control)
    text = corpus.hay()
    return NeedleStage(
        cells=judged,
        losses=tuple(
            row.pair
            for row in summaries
            if row.length is None and row.outcome in (NeedleResult.LOSSES, NeedleResult.LOST)
        ),
        summaries=summaries,
        text=text.name,
        text_sha256=text.sha256,
        template_sha256=grid.template_sha256,
        answer_tokens=session.settings.answer_tokens,
        lengths=session.settings.lengths,
        depths=session.settings.depths,
        prefix="shared" if grid.shared else "fresh",
        notes=(f'Before the text: "{TASK}" After it: "{QUESTION}"', _SHARED if grid.shared else _FRESH, _SPARED),
    )
