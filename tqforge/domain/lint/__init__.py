"""Rules for a series: small pure functions in a list. A rule that cannot run is deferred with the reason."""

from __future__ import annotations

from tqforge.domain.lint import content, files, metal
from tqforge.domain.lint.subject import Deferred, Finding, Rule, Subject

RULES: tuple[tuple[str, Rule], ...] = (*files.RULES, *content.RULES, *metal.RULES)


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
