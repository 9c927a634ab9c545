"""`tqforge patch lint`: the rules for a series, each finding with a remedy."""

from __future__ import annotations

from pathlib import Path

from tqforge import resources
from tqforge.adapters.git import Repository
from tqforge.base import snapshots, source
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.core.values import Base
from tqforge.errors import DownloadError, ExitCode, PatchError
from tqforge.series import apply, lint, series
from tqforge.series.commit_tree import CommitTree
from tqforge.series.lint.subject import Deferred, Finding, Subject, Tree, load_settings
from tqforge.series.lock import Shelf


def run(ctx: Context, *, base_name: str | None = None, patches: Path | None = None) -> int:
    """Print the findings; 1 when there is one."""
    base = load_base(base_name)
    shelf = Shelf.of(base.name, patches)
    with ctx.workspace.lock("tqforge patch lint"):
        subject = _subject(ctx, base, shelf)
        findings, deferred = lint.check(subject)
    _show(ctx, subject, findings, deferred)
    return int(ExitCode.CHECK_FAILED) if findings else 0


def check(ctx: Context, base: Base, shelf: Shelf) -> list[Finding]:
    """The findings alone; the caller holds the workspace lock."""
    return lint.check(_subject(ctx, base, shelf))[0]


def _subject(ctx: Context, base: Base, shelf: Shelf) -> Subject:
    chosen = series.load(shelf.folder)
    before, after, reason = _trees(ctx, base, chosen)
    repository = Repository(ctx.workspace.checkout(base.name))
    known = {label: CommitTree(repository, commit) for label, commit in snapshots.imported(repository).items()}
    return Subject(
        shelf=shelf,
        base=base.name,
        series=chosen,
        settings=load_settings(resources.third_party() / "lint.toml"),
        before=before,
        after=after,
        no_tree=reason,
        snapshots={label: tree for label, tree in known.items() if before},
    )


def _trees(ctx: Context, base: Base, chosen: series.Series) -> tuple[Tree | None, Tree | None, str]:
    """The base and the patched tree, or the reason why they could not be had. Writes nothing a person would see."""
    try:
        repository, commit = source.ensure_base(ctx.workspace, ctx.out, base, source.ARCHIVE)
        with apply.aside(repository, "lint", commit) as work:
            apply.commit_series(repository, work, chosen)
            head = work.resolve("HEAD")
    except DownloadError as error:
        return None, None, f"the base cannot be had: {error.what}"
    except PatchError as error:
        return None, None, f"the series does not apply: {error.what}"
    return CommitTree(repository, commit), CommitTree(repository, head), ""


def _show(ctx: Context, subject: Subject, findings: list[Finding], deferred: list[Deferred]) -> None:
    for finding in findings:
        where = finding.patch or f"series {subject.base}"
        ctx.out.show(f"{where}: {finding.message} ({finding.rule})\n    next: {finding.remedy}")
    for rule in deferred:
        ctx.out.show(f"deferred: {rule.rule}: {rule.reason}")
    done = len(lint.RULES) - len({rule.rule for rule in deferred})
    ctx.out.show(
        f"{len(subject.series.patches)} patches, {done} of {len(lint.RULES)} rules run, {len(findings)} findings"
    )
    ctx.out.document(
        {
            "base": subject.base,
            "patches": len(subject.series.patches),
            "rules": [name for name, _ in lint.RULES],
            "findings": [
                {"rule": item.rule, "patch": item.patch, "message": item.message, "remedy": item.remedy}
                for item in findings
            ],
            "deferred": [{"rule": item.rule, "reason": item.reason} for item in deferred],
        }
    )
