"""Rules for a series: small pure functions in a list. A rule that cannot run is deferred with the reason."""

from __future__ import annotations

from tqforge.series.lint import files, ids_and_layout, kernels
from tqforge.series.lint.subject import Deferred, Finding, Rule, Subject

RULES: tuple[tuple[str, Rule], ...] = (*files.RULES, *ids_and_layout.RULES, *kernels.RULES)


def check(subject: Subject) -> tuple[list[Finding], list[Deferred]]:
    """All findings of all rules, and the rules that could not run."""
    findings: list[Finding] = []
    deferred: list[Deferred] = []
    for name, rule in RULES:
        for result in rule(subject):
            if isinstance(result, Deferred):
                deferred.append(Deferred(result.reason, name))
            else:
                findings.append(Finding(result.patch, result.message, result.remedy, name))
    return findings, deferred
