from __future__ import annotations

import pytest
from synthetic_parts import PAIRS
from synthetic_report import report
from synthetic_stages import plan_stage, speed_stage

from tqforge.core.pair import F16, TQ3_0_PAIR
from tqforge.report.render import bars


def test_memory_bars_are_shares_of_the_longest_and_the_longest_context_comes_first() -> None:
    groups = bars.memory(report())
    assert [n_ctx for n_ctx, _ in groups] == sorted((n_ctx for n_ctx, _ in groups), reverse=True)
    rows = {bar.row.pair: bar.widths for bar in groups[0][1]}
    assert sum(rows[F16][:2]) == pytest.approx(100)
    assert sum(rows[TQ3_0_PAIR][:2]) == pytest.approx(100 * 3.5 / 16, abs=0.1)
    assert rows[TQ3_0_PAIR][:2] == rows[TQ3_0_PAIR][2:]


def test_plan_bars_show_what_was_planned_where_nothing_was_measured() -> None:
    plan = plan_stage()
    found = bars.plan(report(stages=(plan,)))
    assert [bar.row.pair for bar in found] == list(PAIRS)
    assert {bar.row.n_ctx for bar in found} == {plan.n_ctx}
    assert all(bar.widths[:3] == bar.widths[3:] for bar in found)
    assert sum(found[0].widths[:3]) == pytest.approx(100, abs=0.1)


def test_speed_bars_compare_all_depths_of_a_phase() -> None:
    groups = dict(bars.speed(report(stages=(speed_stage(),))))
    assert list(groups) == ["prefill", "decode"]
    widths = [bar.widths[0] for _, depth in groups["decode"] for bar in depth]
    assert max(widths) == 100
    assert all(0 < width <= 100 for width in widths)


def test_there_are_no_bars_without_rows() -> None:
    empty = report(stages=())
    assert not any((bars.memory(empty), bars.plan(empty), bars.speed(empty)))
