"""Render a run for the terminal: tables, findings, the result, and the command line to copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tqforge.report import fmt
from tqforge.report.judge import select
from tqforge.report.judge.findings import Kind, Tone
from tqforge.report.render import usage
from tqforge.report.render.sentences import run as sentences
from tqforge.report.render.terminal import ops, pairs, speed
from tqforge.report.render.terminal.table import Column, table
from tqforge.report.schema.report import Report
from tqforge.report.schema.stages import PlanStage

_TONE = {
    Tone.GOOD: "bold green",
    Tone.MIXED: "bold yellow",
    Tone.BAD: "bold red",
    Tone.NONE: "bold magenta",
}
_MARK = {
    "passed": "green",
    "failed": "red",
    "error": "red",
    "losses": "yellow",
    "inconclusive": "yellow",
    "skipped": "magenta",
}
_KIND = {
    Kind.PROBLEM: ("\N{BALLOT X}", "red"),
    Kind.RESULT: ("\N{CHECK MARK}", "green"),
    Kind.ADVICE: ("\N{RIGHTWARDS ARROW}", "cyan"),
    Kind.SKIPPED: ("\N{HORIZONTAL ELLIPSIS}", "magenta"),
}
#: Stages whose good results the pair table shows already.
_IN_TABLE = {"needle", "quality", "speed"}
_ASCII = str.maketrans(
    {
        "\N{CHECK MARK}": "+",
        "\N{BALLOT X}": "x",
        "\N{RIGHTWARDS ARROW}": ">",
        "\N{HORIZONTAL ELLIPSIS}": ".",
        fmt.NONE: "-",
    }
)


def render(report: Report) -> RenderableType:
    """The run in at most 128 columns. Only the last line, the command, may be longer: it is there to be copied."""
    return _Screen(report)


@dataclass(frozen=True)
class _Screen:
    report: Report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, 128)
        tables = (
            *pairs.pairs(self.report, width),
            *pairs.needles_by_length(self.report, width),
            *speed.speed(self.report, width),
            *ops.device(self.report, width),
            *ops.ops(self.report, width),
        )
        budgets = _budgets(select.plan_stage(self.report), width)
        use = usage.recommended(self.report)
        parts = [self._title(), *tables, *self._findings(), *budgets, self._stages(width), self._headline()]
        if use:
            parts.append(Padding(Text(use.sentence, "bold"), (1, 0, 0, 0)))
        for line in console.render_lines(Group(*parts), options.update(width=width), pad=False):
            yield from _trimmed(line, options.ascii_only)
            yield Segment.line()
        if use:
            yield Segment(f"{use.command(self.report)}\n")

    def _title(self) -> RenderableType:
        report = self.report
        name = fmt.line(report.model.file) if report.model else "no model"
        about = f"  {report.profile} run, {fmt.duration(report.seconds)}"
        about += f", tree {fmt.line(report.build.tree)[:12]}" if report.build.tree else ""
        return Padding(Text.assemble((name, "bold"), (about, "dim")), (1, 0, 1, 0))

    def _headline(self) -> RenderableType:
        head = sentences.headline(self.report)
        return Text.assemble((f"{head.word}. ", _TONE[head.tone]), head.text)

    def _stages(self, width: int) -> RenderableType:
        """One mark per stage; lines break between marks."""
        line, used = Text("\n"), 0
        for stage, mark in zip(self.report.stages, sentences.marks(self.report), strict=True):
            piece = f"{mark.sign} {stage.name} {mark.word}"
            gap = "" if not used else "  " if used + 2 + len(piece) <= width else "\n"
            used = len(piece) + (used + 2 if gap == "  " else 0)
            line.append(gap).append(piece, _MARK[mark.css])
        return Padding(line, (0, 0, 1, 0))

    def _findings(self) -> list[RenderableType]:
        parts: list[RenderableType] = []
        for kind in Kind:
            some = [f for f in sentences.findings(self.report) if f.kind is kind and not _in_table(f)]
            if some:
                parts.append(Padding(Text(sentences.KIND_TITLE[kind], "bold"), (1, 0, 0, 0)))
                parts.append(_list(some, *_KIND[kind]))
        return parts


def _in_table(finding: sentences.Sentence) -> bool:
    """Whether a table shows the same already."""
    if finding.kind is Kind.RESULT:
        return finding.stage in _IN_TABLE
    return finding.kind is Kind.ADVICE and finding.stage == "plan"


def _budgets(plan: PlanStage | None, width: int) -> Sequence[RenderableType]:
    """The recommended pair for each memory budget."""
    if not plan or not plan.recommendations:
        return ()
    choices = plan.recommendations
    columns = [
        Column("pair", [Text(str(choice.pair or choice.outcome)) for choice in choices]),
        Column("needs", [Text(fmt.size(choice.need)) for choice in choices], 2),
        Column("usable", [Text(fmt.size(choice.usable)) for choice in choices], 1),
    ]
    names = Column("memory", [Text(fmt.memory(choice.budget)) for choice in choices])
    title = Text(f"Recommended pair by memory budget, {fmt.count(plan.n_ctx)} tokens", "bold")
    return (Padding(title, (1, 0, 0, 0)), table(names, columns, width))


def _trimmed(line: list[Segment], ascii_only: bool) -> list[Segment]:
    """Remove trailing blanks, and replace signs that an ASCII terminal cannot show."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = kept[-1]._replace(text=kept[-1].text.rstrip())
    return [segment._replace(text=segment.text.translate(_ASCII)) for segment in kept] if ascii_only else kept


def _list(findings: Sequence[sentences.Sentence], sign: str, style: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    for finding in findings:
        title = (f"{finding.title}. ", "bold") if finding.title else ("", "")
        grid.add_row(Text(sign, style), Text.assemble(title, fmt.line(finding.text)))
    return grid
