from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from synthetic_report import EDGES, report
from synthetic_stages import speed_stage

from tqforge.report.render.terminal import screen
from tqforge.report.schema.report import Report


def shown(whole: Report, width: int = 80, *, encoding: str = "utf-8", terminal: bool = False) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=stream, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None)
    console.print(screen.render(whole))
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [80, 120])
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
        "73 %",
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
    own = next(line for line in lines if line.startswith("tq3_0/tq3_0  ") and "46 %" in line)
    assert own.count("%") >= 4  # spread and share at two depths
    assert any(line.startswith("tq3_0/tq3_0 other build") for line in lines)
    assert any(line.startswith("f16/f16 llama-bench") for line in lines)
    for pattern in (r"0\.700 ±\d%  ?✗", r"1\.20 ±\d%  ?✓", r"0\.850 ±\d%  ?\?"):
        assert re.search(pattern, text), pattern
    assert "also at depth" not in text
    assert "also at depth 0" in shown(report(stages=(speed_stage(),)), 40)
    assert "The machine was not quiet" not in text


def test_a_noisy_machine_is_said() -> None:
    stage = speed_stage().model_copy(update={"noise": "The machine was not quiet: half of the CPUs. \x1b[2J"})
    text = shown(report(stages=(stage,)))
    assert "The machine was not quiet" in text
    assert "\x1b" not in text
