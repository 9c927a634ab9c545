"""The recommended pair, and the command line that uses it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePath

from tqforge.core.pair import Pair
from tqforge.report import fmt
from tqforge.report.judge import findings, select
from tqforge.report.judge.findings import Tone
from tqforge.report.schema.report import Report


@dataclass(frozen=True)
class Usage:
    """A recommended pair, the context length it is for, and the bytes that both and the model need."""

    pair: Pair
    n_ctx: int
    need: int | None

    @property
    def sentence(self) -> str:
        """`Recommended: q8_0/tq3_0 for 8,192 tokens (258 MiB with the model).`"""
        need = "" if self.need is None else f" ({fmt.size(self.need)} with the model)"
        return f"Recommended: {self.pair} for {fmt.count(self.n_ctx)} tokens{need}."

    def command(self, report: Report) -> str:
        """Start llama-server of the patched build with this model, context length and pair."""
        model = shlex.quote(fmt.line(_model(report)))
        return f"tqforge run -- llama-server -m {model} -c {self.n_ctx} {flags(self.pair)}"


def recommended(report: Report) -> Usage | None:
    """The recommendation for the smallest memory budget that has one; none after a failure or an error."""
    plan = select.plan_stage(report)
    if not plan or findings.summary(report).overall.tone is Tone.BAD:
        return None
    choices = sorted(plan.recommendations, key=lambda choice: choice.budget)
    return next((Usage(choice.pair, choice.n_ctx, choice.need) for choice in choices if choice.pair), None)


def flags(pair: Pair) -> str:
    """`-ctk q8_0 -ctv tq3_0`."""
    return f"-ctk {pair.k} -ctv {pair.v}"


def _model(report: Report) -> str:
    """The model file as it was named on the command line, else its bare name."""
    file = report.model.file if report.model else "model.gguf"
    return next((part for part in report.command if PurePath(part).name == file), file)
