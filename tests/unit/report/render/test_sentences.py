"""The sentences of a report, one rule at a time: nothing is called good that was not observed."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_parts import TWELVE, cell, interval, memory_row, summaries
from synthetic_report import EDGES, crash_in_the_middle, everything_deferred, not_numbers, report, zero_cells
from synthetic_stages import device_stage, quality_row, speed_stage

from tqforge.core.pair import Pair
from tqforge.report.judge import pair_levels
from tqforge.report.judge.findings import Kind, Tone
from tqforge.report.render.sentences import pairs
from tqforge.report.render.sentences import run as sentences
from tqforge.report.schema.base import CellOutcome, Check, Interval, StageStatus
from tqforge.report.schema.report import Report
from tqforge.report.schema.rows import OpsRow, SpeedRow
from tqforge.report.schema.stages import CheckStage, MemoryStage, NeedleStage, OpsStage, QualityStage, SpeedStage, Stage

GOOD_WORDS = ("passed", "exactly", "found 27 of 27")


def with_stages(*stages: Stage, **more: Any) -> Report:
    return report(stages=stages, **more)


def said(whole: Report, kind: Kind) -> str:
    return "\n".join(finding.text for finding in sentences.findings(whole) if finding.kind is kind)


def needle(hits: int, misses: int = 0, *, errors: int = 0, pair: str = "tq3_0/tq3_0", **more: Any) -> NeedleStage:
    outcomes = [CellOutcome.HIT] * hits + [CellOutcome.MISS] * misses + [CellOutcome.ERROR] * errors
    cells = [cell(pair, 2048, 0.5, seed, outcome) for seed, outcome in enumerate(outcomes)]
    return NeedleStage(status=StageStatus.PASSED, cells=tuple(cells), summaries=summaries(cells), **more)


def quality(*rows: Any) -> QualityStage:
    return QualityStage(status=StageStatus.PASSED, rows=rows)


def test_needles_with_interval() -> None:
    assert "tq3_0/tq3_0 found 24 of 27 needles (89%, 95% interval 72 to 96%)." in said(
        with_stages(needle(24, 3)), Kind.PROBLEM
    )


def test_all_needles_found_is_shown() -> None:
    whole = with_stages(needle(27))
    assert "found 27 of 27 needles (100%" in said(whole, Kind.RESULT)
    assert sentences.headline(whole).tone is Tone.GOOD


def test_an_error_is_not_a_miss_and_not_a_success() -> None:
    assert "found 3 of 3 needles (100%, 95% interval 44 to 100%); 2 errors." in said(
        with_stages(needle(3, errors=2)), Kind.PROBLEM
    )


def test_guessing_without_a_needle_devalues_the_test() -> None:
    lucky = cell("f16/f16", 512, 0.5, 1, CellOutcome.PARTIAL, control="no-needle")
    whole = with_stages(NeedleStage(status=StageStatus.PASSED, cells=(lucky,)))
    assert "the questions can be guessed" in said(whole, Kind.PROBLEM)


def test_a_summary_that_does_not_fit_the_cells_gives_no_interval() -> None:
    stage = needle(3, 1)
    stale = stage.model_copy(update={"cells": stage.cells[:2]})
    assert "interval" not in said(with_stages(stale), Kind.RESULT)


def test_memory_to_the_byte() -> None:
    rows = (memory_row("f16/f16"), memory_row("tq3_0/tq3_0"), memory_row("q8_0/tq3_0"))
    text = said(with_stages(MemoryStage(status=StageStatus.PASSED, rows=rows)), Kind.RESULT)
    assert (
        "K and V buffers are exactly 14/32 bytes per value (3.5 bits, 4.57 times smaller than f16 in this run)" in text
    )
    assert "q8_0/tq3_0 (6 bits, 2.67 times smaller than f16 in this run)" in text


def test_no_ratio_to_an_f16_that_was_not_measured() -> None:
    text = said(with_stages(MemoryStage(status=StageStatus.PASSED, rows=(memory_row("tq3_0/tq3_0"),))), Kind.RESULT)
    assert "f16" not in text


def test_one_byte_too_many_is_a_shortfall_even_if_the_stage_says_passed() -> None:
    whole = with_stages(MemoryStage(status=StageStatus.PASSED, rows=(memory_row("tq3_0/tq3_0", extra=1),)))
    assert "the K buffer has 1 bytes more than the expected" in said(whole, Kind.PROBLEM)
    assert "exactly" not in said(whole, Kind.RESULT)
    assert sentences.headline(whole).tone is Tone.BAD


def test_advice_only_if_the_intervals_are_apart() -> None:
    sym, mixed = quality_row("tq3_0/tq3_0", rotation="none"), quality_row("q8_0/tq3_0", rotation="K")
    keys = "Keys need more bits"
    assert keys in said(with_stages(quality(sym, mixed)), Kind.ADVICE)
    near = quality_row("q8_0/tq3_0", kl=interval(0.27))
    assert keys not in said(with_stages(quality(sym, near)), Kind.ADVICE)
    assert keys not in said(with_stages(quality(mixed)), Kind.ADVICE)


def test_a_row_without_rotation_is_told_apart_and_never_advised() -> None:
    plain = quality_row("q4_0/q4_0", kl=interval(0.6), rotation="none", unrotated=True)
    rows = (plain, quality_row("q4_0/q4_0", kl=interval(0.02), rotation="KV"))
    whole = report(stages=(QualityStage(status=StageStatus.PASSED, rows=rows),))
    assert [(one.level, one.unrotated) for one in pair_levels.judge(whole)] == [("safe", False), ("unsafe", True)]
    text = " ".join(finding.text for finding in sentences.findings(whole))
    assert "safe: q4_0/q4_0." in text
    assert "unsafe" not in text


def test_advice_names_the_cheapest_close_pair() -> None:
    rows = [quality_row(pair) for pair in TWELVE if str(pair) != "f16/f16"]
    advice = said(with_stages(quality(*rows)), Kind.ADVICE)
    assert advice.count("Keys need") == 1
    assert "q8_0/tq3_0 (6 bits)" in advice


@pytest.mark.parametrize(
    ("kl", "word"), [(0.004, "indistinguishable"), (0.03, "close"), (0.2, "clearly different"), (2.1, "unusable")]
)
def test_bands(kl: float, word: str) -> None:
    assert word in pairs.band(interval(kl))


def test_broken_only_with_the_whole_interval() -> None:
    across = Interval(value=0.6, low=0.4, high=0.9)
    assert pairs.band(across) == "clearly different from f16"


def test_a_broken_stock_pair_is_named_too() -> None:
    row = quality_row("q4_0/q4_0", kl=interval(2.0), top1=interval(0.35))
    assert "q4_0/q4_0 is so far" in said(with_stages(quality(row)), Kind.PROBLEM)


def test_two_pairs_that_cannot_be_told_apart() -> None:
    rows = (quality_row("tq3_0/tq3_0", kl=interval(0.05)), quality_row("q4_0/q4_0"))
    assert "not distinguishable from q4_0/q4_0" in said(with_stages(quality(*rows)), Kind.PROBLEM)


def test_no_number_is_said_to_be_none() -> None:
    text = said(not_numbers(), Kind.PROBLEM)
    assert "is not a number" in text
    assert "none of 1 needle could be judged" in text


def test_ops_without_a_case_show_nothing() -> None:
    row = OpsRow(backend="CPU", op="CPY", passed=0, failed=0, unsupported=7)
    whole = with_stages(OpsStage(status=StageStatus.PASSED, rows=(row,)))
    assert "no case ran" in said(whole, Kind.PROBLEM)
    assert sentences.headline(whole).tone is Tone.NONE


def test_failed_ops_are_named() -> None:
    rows = (OpsRow(backend="Metal", op="SET_ROWS", passed=5, failed=2, unsupported=0),)
    text = said(with_stages(OpsStage(status=StageStatus.FAILED, rows=rows)), Kind.PROBLEM)
    assert "Metal: 2 cases of 7 failed (SET_ROWS)" in text


def test_a_failed_check_says_what_was_expected_and_seen() -> None:
    check = Check(
        name="tree id", status=StageStatus.FAILED, expected="aaaa", observed="bbbb", reason="Another build is loaded"
    )
    whole = with_stages(CheckStage(name="source", status=StageStatus.FAILED, checks=(check,)))
    assert "tree id failed. Expected aaaa, got bbbb. Another build is loaded." in said(whole, Kind.PROBLEM)


def test_a_deferred_check_is_no_pass() -> None:
    checks = (
        Check(name="NEON", status=StageStatus.SKIPPED, reason="no cross compiler"),
        Check(name="C", status=StageStatus.PASSED),
    )
    whole = with_stages(CheckStage(name="codec", status=StageStatus.PASSED, checks=checks))
    assert "NEON: no cross compiler." in said(whole, Kind.SKIPPED)
    assert "1 of 2 checks passed" in said(whole, Kind.RESULT)


def test_a_slow_pair_is_a_suspected_fall_back() -> None:
    whole = with_stages(speed_stage())
    short = said(whole, Kind.PROBLEM)
    assert (
        "tq3_0/tq3_0: 40% of the rate of f16 in prefill at depth 4,096, decode at depth 4,096. A fallback is" in short
    )
    assert "q8_0/tq3_0 runs at 82% in prefill and 82% in decode" in said(whole, Kind.RESULT)


def test_aims_of_speed_are_told_as_met_missed_or_open() -> None:
    whole = with_stages(speed_stage())
    short = said(whole, Kind.PROBLEM)
    assert "tq3_0/tq3_0, prefill at depth 4,096: 0.70 times" in short
    assert "target 0.85, 5 rounds: missed." in short
    assert "target 0.85, 5 rounds: not decided." in short
    shown = said(whole, Kind.RESULT)
    assert "tq3_0/tq3_0, decode at depth 4,096: 1.20 times" in shown
    loud = with_stages(speed_stage().model_copy(update={"spread": 0.2}))
    assert "q4_0/q4_0, on a busy machine; target 0.85" in said(loud, Kind.PROBLEM)
    assert "of first" not in short + shown


def test_a_pair_far_below_its_neighbour_is_suspected_too() -> None:
    row = SpeedRow(
        pair=Pair.parse("q8_0/tq3_0"), depth=0, phase="decode", rate=interval(9), ratio_f16=interval(0.6), rounds=3,
        neighbour=Pair.parse("q8_0/q8_0"), ratio_neighbour=interval(0.4),
    )  # fmt: skip
    text = said(with_stages(SpeedStage(status=StageStatus.PASSED, rows=(row,))), Kind.PROBLEM)
    assert text.strip() == "q8_0/tq3_0: 40% of the rate of q8_0/q8_0 in decode at depth 0. A fallback is suspected."


def test_speed_without_f16_beside_it_says_nothing() -> None:
    row = SpeedRow(pair=Pair.parse("tq3_0/tq3_0"), depth=0, phase="decode", rate=interval(9), ratio_f16=None, rounds=3)
    assert said(with_stages(SpeedStage(status=StageStatus.PASSED, rows=(row,))), Kind.RESULT) == ""


def test_everything_deferred() -> None:
    whole = everything_deferred()
    head = sentences.headline(whole)
    assert head.tone is Tone.NONE
    assert head.word == "No results"
    assert said(whole, Kind.RESULT) == said(whole, Kind.PROBLEM) == ""
    assert said(whole, Kind.SKIPPED).count("The library could not be loaded. Run tqforge build.") == 8


def test_a_crash_in_the_middle_keeps_what_was_seen() -> None:
    whole = crash_in_the_middle()
    assert sentences.headline(whole).word == "Error"
    assert "Ended in an error after 11 observations. The child ended by SIGSEGV" in said(whole, Kind.PROBLEM)
    assert "found 8 of 8" in said(whole, Kind.RESULT)


def test_no_success_for_nothing() -> None:
    whole = zero_cells()
    assert sentences.headline(whole).tone is Tone.NONE
    assert said(whole, Kind.PROBLEM).count("without any observation") == 3
    assert said(whole, Kind.RESULT) == ""
    empty = with_stages()
    assert "This run has no results" in sentences.headline(empty).text


@pytest.mark.parametrize("status", [StageStatus.FAILED, StageStatus.ERROR])
def test_a_recorded_failure_is_never_talked_away(status: StageStatus) -> None:
    assert sentences.headline(with_stages(needle(27), status=status)).tone is Tone.BAD


def test_losses_are_never_called_held() -> None:
    whole = with_stages(needle(5, 4))
    assert sentences.headline(whole).word == "Losses measured"
    assert [mark.word for mark in sentences.marks(whole)] == ["losses measured"]


@pytest.mark.parametrize("name", EDGES)
def test_no_good_word_outside_of_what_was_shown(name: str) -> None:
    for finding in sentences.findings(EDGES[name]()):
        if finding.kind in (Kind.PROBLEM, Kind.SKIPPED):
            assert not [word for word in GOOD_WORDS if word in finding.text]


def test_stages_that_were_not_asked_for_are_named() -> None:
    assert "Not part of this run: codec and speed." in said(
        with_stages(needle(1), not_asked=("codec", "speed")), Kind.SKIPPED
    )


def test_a_run_that_was_cut_off_does_not_look_finished() -> None:
    whole = with_stages(needle(27), asked=("needle", "quality", "speed"))
    head = sentences.headline(whole)
    assert (head.tone, head.word) == (Tone.MIXED, "Unfinished")
    assert "Quality and speed did not run." in head.text
    assert "ended before quality and speed." in said(whole, Kind.PROBLEM)
    assert "quality" not in said(whole, Kind.SKIPPED)


def test_the_whole_model_on_a_device_is_said_pair_by_pair() -> None:
    texts = [f.text for f in sentences.findings(report()) if f.stage == "device"]
    assert len(texts) == 3
    assert texts[0].startswith("f16/f16: KL(CPU || Metal emulator) 0.0000050 on the same rows (error of the rows ")
    assert "f16/f16 0.000020, CPU against itself 0.000010)" in texts[0]
    assert "the greedy texts are the same; 21,000 dispatches." in texts[0]
    assert "the greedy texts differ from token 8, by 0.0200 and 0.0100 logits" in texts[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"dispatches": 0},
        {"strays": ("FLASH_ATTN on CPU (30, first x)",)},
        {"kl_same": Interval(value=2e-3, low=1e-3, high=3e-3)},
    ],
)
def test_a_device_that_did_nothing_or_was_left_is_a_shortfall(changes: dict[str, Any]) -> None:
    stage = device_stage()
    rows = (stage.rows[0], stage.rows[1].model_copy(update=changes))
    found = sentences.findings(report(stages=(stage.model_copy(update={"rows": rows}),)))
    assert [f.kind for f in found if f.stage == "device"] == [Kind.PROBLEM, Kind.RESULT]
