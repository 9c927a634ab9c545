"""`tqforge pr`: write the pull-request pack. Nothing is pushed, opened or described."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tqforge import resources
from tqforge.adapters import fs
from tqforge.base import source
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.core.values import Base
from tqforge.errors import ConfigError, PatchError
from tqforge.pr import bundle, evidence, rules
from tqforge.pr.rules import State
from tqforge.pr.split import CPU, Part, split
from tqforge.series import apply, lint, series
from tqforge.series.lint import subject
from tqforge.series.lock import SeriesPaths


def run(ctx: Context, *, base_name: str | None = None, patches: Path | None = None, out: Path | None = None) -> int:
    """Write the pack. Raises PatchError when lint has findings."""
    base = load_base(base_name)
    paths = SeriesPaths.of(base.name, patches)
    known = rules.load(resources.third_party() / "upstream_rules.toml")
    with ctx.workspace.lock("tqforge pr"):
        _require_clean(ctx, base, paths)
        repository, commit = source.ensure_base(ctx.workspace, ctx.out, base, source.ARCHIVE)
        chosen = series.load(paths.folder)
        with tempfile.TemporaryDirectory(prefix="tqforge-pr-") as scratch:
            with apply.temporary_worktree(repository, "pr", commit) as work:
                applied = apply.commit_series(repository, work, chosen)
            parts = split(repository, commit, chosen, applied, Path(scratch))
        private = (str(ctx.workspace.root), str(Path.home()), tempfile.gettempdir())
        runs = evidence.collect(ctx.workspace.runs, [part.tree for part in parts], private)
        tree = repository.files(commit)
        checklist = rules.check(known, tree, {**evidence.states(runs), **_of_parts(parts)})
        files = bundle.files(base, parts, runs, rules.page(checklist, runs.stale), tree.read(bundle.TEMPLATE))
        folder = _write(out or ctx.workspace.runs / "pr" / parts[-1].tree[:12], files)
    filled = len(checklist.items) - len(checklist.missing)
    ctx.out.show("\n".join(f"{part.name}: {len(part.pieces)} patches, tree {part.tree}" for part in parts))
    ctx.out.show(f"{filled} of {len(checklist.items)} rules have their evidence; see {folder / 'CHECKLIST.md'}")
    ctx.out.document(
        {
            "folder": str(folder),
            "parts": [
                {"name": part.name, "tree": part.tree, "patches": [p.file for p in part.pieces]} for part in parts
            ],
            "files": sorted(files),
            "missing": checklist.missing,
            "stale": list(runs.stale),
        }
    )
    return 0


def _require_clean(ctx: Context, base: Base, paths: SeriesPaths) -> None:
    findings, _ = lint.check(subject.load(ctx.workspace, ctx.out, base, paths))
    if findings:
        raise PatchError(
            f"lint has {len(findings)} findings, the first: {findings[0].patch or 'series'}: {findings[0].message}.",
            where=str(paths.folder),
            remedy="Run `tqforge patch lint` and fix them.",
        )


def _of_parts(parts: tuple[Part, ...]) -> dict[str, State]:
    first = parts[0]
    touched = [piece.title for piece in first.pieces if b" b/tests/test-backend-ops.cpp\n" in piece.data]
    return {
        "split": State(first.name == CPU, f"parts/: {', '.join(part.name for part in parts)}"),
        "cases": State(bool(touched), f"in {', '.join(touched)}" if touched else "missing: no patch adds cases"),
    }


def _write(folder: Path, files: dict[str, bytes]) -> Path:
    """Write the whole pack or nothing; refuse a folder with other content."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "SHA256SUMS").is_file():
        raise ConfigError("The folder is not empty and not a pack.", where=str(folder), remedy="Choose another --out.")
    with fs.atomic_dir(folder) as fresh:
        for name, data in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder
