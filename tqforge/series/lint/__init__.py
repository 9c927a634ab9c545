"""Lint rules for a series: small functions in a list. A rule that cannot run is skipped with the reason."""

from __future__ import annotations

from tqforge.series.lint import files, ids_and_layout, kernels
from tqforge.series.lint.subject import Finding, Rule, Skipped, Subject

RULES: tuple[tuple[str, Rule], ...] = (*files.RULES, *ids_and_layout.RULES, *kernels.RULES)


def check(subject: Subject) -> tuple[list[Finding], list[Skipped]]:
    """Run all rules; return their findings, and the rules that could not run."""
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    for name, rule in RULES:
        for result in rule(subject):
            if isinstance(result, Skipped):
                skipped.append(Skipped(result.reason, name))
            else:
                findings.append(Finding(result.patch, result.message, result.remedy, name))
    return findings, skipped
