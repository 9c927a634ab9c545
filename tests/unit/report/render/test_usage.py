from __future__ import annotations

from synthetic_report import report, stages
from synthetic_stages import plan_stage, recommendation

from tqforge.core.pair import F16, Q8_0_TQ3_0
from tqforge.report.judge.budget import advise
from tqforge.report.render import usage
from tqforge.report.schema.base import StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import Recommendation
from tqforge.report.schema.stages import CheckStage


def advised(**more: object) -> Report:
    return advise(report(stages=(*stages(), plan_stage()), **more))


def planned(*choices: Recommendation) -> Report:
    return report(stages=(plan_stage().model_copy(update={"recommendations": choices}),))


def test_the_smallest_budget_with_a_safe_pair_is_recommended() -> None:
    chosen = usage.recommended(planned(*map(recommendation, (900, 500, 100), (F16, Q8_0_TQ3_0, None))))
    assert chosen is not None
    assert chosen.pair == Q8_0_TQ3_0
    assert chosen.sentence == "Recommended: q8_0/tq3_0 for 8,192 tokens (250 bytes with the model)."
    assert usage.recommended(planned(recommendation(100, None))) is None
    assert usage.recommended(report()) is None, "stage plan did not run"


def test_nothing_is_recommended_after_a_failure() -> None:
    good, bad = advised(), CheckStage(name="source", status=StageStatus.FAILED, reason="Wrong tree.")
    assert usage.recommended(good) is not None
    assert usage.recommended(good.model_copy(update={"stages": (bad, *good.stages[1:])})) is None


def test_the_command_names_pair_context_and_the_model_as_it_was_given() -> None:
    one = usage.Usage(Q8_0_TQ3_0, 4096, None)
    bare = one.command(report())
    assert bare == "tqforge run -- llama-server -m synthetic.gguf -c 4096 -ctk q8_0 -ctv tq3_0"
    named = report(command=("tqforge", "verify", "-m", "my models/synthetic.gguf"))
    assert "-m 'my models/synthetic.gguf' -c 4096" in one.command(named)


def test_hostile_names_stay_one_quoted_word() -> None:
    made = report()
    assert made.model is not None
    hostile = made.model_copy(update={"model": made.model.model_copy(update={"file": "a; rm\n-rf \x1b[31m.gguf"})})
    text = usage.Usage(Q8_0_TQ3_0, 4096, None).command(hostile)
    assert "-m 'a; rm -rf <U+001B>[31m.gguf' -c" in text
