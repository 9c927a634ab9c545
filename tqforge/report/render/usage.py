"""The recommended pair, and the command line that uses it."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from tqforge.report import fmt
from tqforge.report.judge import findings, select
from tqforge.report.schema.report import Recommendation, Report


def recommended(report: Report) -> Recommendation | None:
    """The recommendation for the smallest memory budget that has one; none after a failure or an error."""
    if findings.headline(report).tone is findings.Tone.BAD:
        return None
    plan = select.plan_stage(report)
    choices = [choice for choice in plan.recommendations if choice.pair] if plan else []
    return min(choices, key=lambda choice: choice.budget, default=None)


def sentence(choice: Recommendation) -> str:
    """`Recommended: q8_0/tq3_0 for 8,192 tokens (258 MiB with the model).`"""
    need = "" if choice.need is None else f" ({fmt.size(choice.need)} with the model)"
    return f"Recommended: {fmt.line(choice.pair or '')} for {fmt.count(choice.n_ctx)} tokens{need}."


def flags(pair: str) -> str:
    """`-ctk q8_0 -ctv tq3_0`."""
    k, _, v = fmt.line(pair).partition("/")
    return f"-ctk {shlex.quote(k)} -ctv {shlex.quote(v)}"


def command(report: Report, choice: Recommendation) -> str:
    """Start llama-server of the patched build with the model, the context and the pair of a recommendation."""
    model = shlex.quote(fmt.line(_model(report)))
    return f"tqforge run -- llama-server -m {model} -c {choice.n_ctx} {flags(choice.pair or '')}"


def _model(report: Report) -> str:
    """The model file as it was named on the command line, else its bare name."""
    file = report.model.file if report.model else "model.gguf"
    return next((part for part in report.command if PurePath(part).name == file), file)
