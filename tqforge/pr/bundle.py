"""Make all files of the pull-request pack; the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence

from tqforge.core.values import Base
from tqforge.pr import evidence
from tqforge.pr.evidence import Runs
from tqforge.pr.split import Part
from tqforge.report.render.sentences import pairs as pair_names
from tqforge.series.patchfile import parse

TEMPLATE = ".github/pull_request_template.md"
_NONE = "No recorded run of an exported tree."


def facts(base: Base, parts: Sequence[Part], runs: Runs) -> str:
    """Return the tables of FACTS.md: patches, proofs, quality, operations, speed."""
    lines = ["# Facts", "", f"Base: {base.title}, commit {base.commit}, tree {base.tree}.", ""]
    for part in parts:
        lines += [f"## Part {part.name}: tree {part.tree}", "", *_patches(part)]
    lines += ["## Tests that fail without their patch", "", *_proofs(runs)]
    lines += ["## KL divergence and perplexity", "", *_quality(runs)]
    lines += ["## test-backend-ops", "", *_ops(runs)]
    lines += ["## Speed", "", *_speed(runs)]
    lines += ["## Machines and models of the runs", "", *_machines(runs)]
    return "\n".join(lines).rstrip() + "\n"


def _patches(part: Part) -> list[str]:
    rows = []
    for piece in part.pieces:
        patch = parse(piece.data.decode("utf-8", "surrogateescape"))
        hunks = [hunk for diff in patch.files for hunk in diff.hunks]
        added, removed = (sum(len(hunk.changed(sign)) for hunk in hunks) for sign in "+-")
        alone = "yes" if piece.alone else "no"
        rows.append((piece.file, patch.subject, str(len(patch.files)), f"+{added} -{removed}", alone))
    return _table(("file", "subject", "files", "lines", "applies to the bare base alone"), rows)


def _proofs(runs: Runs) -> list[str]:
    rows = [
        (
            proof.patch,
            f"`{proof.guard}`",
            str(proof.with_patch.status),
            str(proof.without_patch.status) if proof.without_patch else proof.note,
            proof.sentence(),
        )
        for proof in evidence.guard_proofs(runs)
    ]
    return _table(("patch", "test", "with the patch", "without it", "proof"), rows)


def _quality(runs: Runs) -> list[str]:
    rows = [
        (
            run,
            "f16/f16, noise" if row.is_floor else pair_names.name(row),
            f"{row.bits:g}",
            str(row.prefix),
            str(row.tokens),
            f"{row.kl.value:.5f} ({row.kl.low:.5f} to {row.kl.high:.5f})",
            f"{100 * row.top1.value:.2f}",
            f"{row.perplexity:.4f}",
            f"{row.perplexity_reference:.4f}",
        )
        for run, row in evidence.quality(runs)
    ]
    head = ("run", "K/V", "bits", "after", "tokens", "KL (95 %)", "top-1 %", "perplexity", "perplexity f16")
    return _table(head, rows)


def _ops(runs: Runs) -> list[str]:
    rows = [
        (run, row.backend, row.op, str(row.passed), str(row.failed), str(row.unsupported))
        for run, row in evidence.ops(runs)
    ]
    return _table(("run", "backend", "operation", "passed", "failed", "not supported"), rows)


def _speed(runs: Runs) -> list[str]:
    rows = [
        (run, str(row.pair), row.phase, str(row.depth), f"{row.rate.value:.2f}") for run, row in evidence.speed(runs)
    ]
    return _table(("run", "K/V", "phase", "depth", "tokens/s"), rows)


def _machines(runs: Runs) -> list[str]:
    rows = [
        (
            name,
            report.build.tree[:12],
            report.machine.cpu,
            report.model.name if report.model else "-",
            report.model.sha256[:12] if report.model else "-",
        )
        for name, report in runs.reports
    ]
    return _table(("run", "tree", "machine", "model", "sha256"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return [_NONE, ""]
    lines = [head, ["---"] * len(head), *rows]
    return [*("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines), ""]


def commands(base: Base, parts: Sequence[Part], runs: Runs) -> str:
    """Return the text of COMMANDS.md: how to apply, test and measure, and the command of each recorded run."""
    lines = ["# Commands", "", "## Apply", "", "```sh", f"git clone {base.repository} && cd llama.cpp"]
    lines += [f"git checkout -b tq3_0 {base.commit}"]
    lines += [f"git am parts/{part.name}/*.patch" for part in parts]
    lines += ["```", "", "## Test", "", "```sh", "cmake -B build -DLLAMA_BUILD_TESTS=ON && cmake --build build -j"]
    lines += ["build/bin/test-quantize-fns", "build/bin/test-backend-ops test -b CPU -p tq3_0", "```", ""]
    lines += ["## Measure", "", "```sh", *_measure(), "```", "", "## Recorded runs", "", "```sh"]
    lines += [f"{shlex.join(report.command)}    # {name}" for name, report in runs.reports]
    return "\n".join([*lines, "```"]) + "\n"


def _measure() -> list[str]:
    pairs = ("f16", "q8_0", "q4_0", "tq3_0")
    perplexity = "build/bin/llama-perplexity -m MODEL -f TEXT -fa on"
    return [
        f"{perplexity} --kl-divergence-base logits.bin",
        *(
            f"{perplexity} --kl-divergence --kl-divergence-base logits.bin -ctk {kind} -ctv {kind}"
            for kind in pairs[1:]
        ),
        f"build/bin/llama-bench -m MODEL -ngl 0 -fa 1 -ctk {','.join(pairs)} -ctv {','.join(pairs)} -d 0,4096",
    ]


def files(base: Base, parts: Sequence[Part], runs: Runs, checklist: str, template: str | None) -> dict[str, bytes]:
    """Return every file of the pack by its path."""
    found: dict[str, bytes] = {
        "FACTS.md": facts(base, parts, runs).encode(),
        "COMMANDS.md": commands(base, parts, runs).encode(),
        "CHECKLIST.md": checklist.encode(),
    }
    if template is not None:
        found["DESCRIPTION.md"] = template.encode()  # upstream's own template, not filled in
    for part in parts:
        found |= {f"parts/{part.name}/{piece.file}": piece.data for piece in part.pieces}
    found |= {f"evidence/{name}": data for name, data in runs.files}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(found.items()))
    return found | {"SHA256SUMS": sums.encode()}
