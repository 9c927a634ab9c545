from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from synthetic_report import EDGES, report, stages
from synthetic_stages import plan_stage, recommendation, speed_stage

from tqforge.core.pair import F16, Q8_0_TQ3_0
from tqforge.report import fmt
from tqforge.report.render.terminal import screen
from tqforge.report.schema.report import Report


def shown(whole: Report, width: int = 80, *, encoding: str = "utf-8", terminal: bool = False) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=stream, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None)
    console.print(screen.render(whole), crop=False)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


def recommending() -> Report:
    """A run with a plan whose smallest budget has a pair."""
    choices = (
        recommendation(16 << 30, F16),
        recommendation(323 << 20, Q8_0_TQ3_0, need=258 << 20, usable=258 << 20),
        recommendation(288 << 20, None, usable=230 << 20),
    )
    return report(stages=(*stages(), plan_stage().model_copy(update={"recommendations": choices})))


def test_the_pair_table_looks_like_this_on_60_columns() -> None:
    assert shown(report(), 60).splitlines()[:9] == [
        "",
        "synthetic.gguf  quick run, 4 min 41 s, tree aaaaaaaaaaaa",
        "",
        "pair          bits    needles        KL         verdict",
        "───────────────────────────────────────────────────────",
        "f16/f16         16   26/26 1?   0.00021       reference",
        "q8_0/q8_0      8.5   21/26 1?    0.0044   costs quality",
        "q4_0/q4_0      4.5   20/26 1?     0.048   costs quality",
        "tq3_0/tq3_0    3.5   20/26 1?     0.280   costs quality",
    ]


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (37, ["pair", "KL", "verdict"]),
        (45, ["pair", "bits", "KL", "verdict"]),
        (72, ["pair", "bits", "cache", "needles", "KL", "verdict"]),
        (80, ["pair", "bits", "cache", "needles", "KL", "top-1", "verdict"]),
    ],
)
def test_columns_are_dropped_and_never_cut(width: int, titles: list[str]) -> None:
    lines = shown(report(), width).splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("pair"))
    assert lines[head].split() == titles
    assert "…" not in "".join(lines[head : head + 7])


@pytest.mark.parametrize("width", [40, 80])
def test_the_last_lines_are_the_recommended_pair_and_its_whole_command(width: int) -> None:
    *_, said, command = shown(recommending(), width).split("\n\n")[-1].splitlines()
    assert command == "tqforge run -- llama-server -m synthetic.gguf -c 8192 -ctk q8_0 -ctv tq3_0"
    assert len(said) <= width
    assert said.endswith("the model).")


def test_budgets_are_a_table() -> None:
    text = shown(recommending())
    assert re.search(r"^323 MiB +q8_0/tq3_0 +258 MiB +258 MiB$", text, re.MULTILINE)
    assert re.search(rf"^288 MiB +no safe pair fits +{fmt.NONE} +230 MiB$", text, re.MULTILINE)


def test_no_recommendation_without_a_plan() -> None:
    assert "Recommended" not in shown(report())


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", EDGES)
def test_it_fits_and_is_plain_when_piped(name: str, width: int) -> None:
    lines = shown(EDGES[name](), width).splitlines()
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "\x1b" in line or line != line.rstrip()]


def test_pairs_and_figures_are_there() -> None:
    text = shown(report())
    for piece in (
        "tq3_0/tq3_0",
        "3.5",
        "19.7 MiB",
        "0.280",
        "73%",
        "needles by tokens",
        "Problems",
        "skipped",
    ):
        assert piece in text


def test_ops_and_the_whole_model_have_their_figures() -> None:
    text = shown(report())
    assert re.search(r"FLASH_ATTN_EXT +412 24 unsupported", text)
    assert re.search(r"tq3_0/tq3_0 +0\.00010 +0\.00040 +0\.00020 +0\.200 +0\.210\n", text)


def test_a_narrow_screen_leaves_out_the_least_needed_columns() -> None:
    wide, narrow = shown(EDGES["twelve pairs"](), 120), shown(EDGES["twelve pairs"](), 80)
    assert "decode/f16" in wide
    assert "perplexity" in wide
    assert "verdict" in narrow
    assert "perplexity" not in narrow
    assert "…" not in narrow.split("needles by tokens")[0].split("pair  ")[1]


def test_colours_on_a_terminal_only() -> None:
    assert "\x1b[" in shown(report(), terminal=True)


def test_an_old_terminal_gets_plain_signs() -> None:
    text = shown(report(), encoding="ascii")
    assert "+ source passed" in text
    assert "x Needle." in text


def test_markup_and_escapes_of_an_answer_stay_text() -> None:
    text = shown(EDGES["hostile"]())
    assert "[bold]rich[/bold]" in text
    assert "\x1b" not in text


def test_speed_shows_rates_attention_aims_and_the_other_build() -> None:
    lines = shown(report(stages=(speed_stage(),)), 120).splitlines()
    text = "\n".join(lines)
    assert "decode at depth" in text
    own = next(line for line in lines if line.startswith("tq3_0/tq3_0  ") and "46%" in line)
    assert own.count("%") >= 4  # spread and share at two depths
    assert any(line.startswith("tq3_0/tq3_0 other build") for line in lines)
    assert any(line.startswith("f16/f16 llama-bench") for line in lines)
    for pattern in (r"0\.700 ±\d%  ?✗", r"1\.20 ±\d%  ?✓", r"0\.850 ±\d%  ?\?"):
        assert re.search(pattern, text), pattern
    assert "also at depth" not in text
    assert "also at depth 0" in shown(report(stages=(speed_stage(),)), 40)
    assert "The machine was busy" not in text


def test_a_noisy_machine_is_said() -> None:
    stage = speed_stage().model_copy(update={"busy": 0.5})
    text = shown(report(stages=(stage,)))
    assert "The machine was busy" in text
