"""`tqforge pr`: the pull-request pack. Nothing is pushed, opened or described."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tqforge import resources
from tqforge.adapters import fs
from tqforge.base import source
from tqforge.base.pins import load_base
from tqforge.commands.patch import lint
from tqforge.context import Context
from tqforge.errors import ConfigError, PatchError
from tqforge.pr import bundle, evidence, rules
from tqforge.pr.rules import State
from tqforge.pr.split import CPU, Part, split
from tqforge.series import apply, series
from tqforge.series.commit_tree import CommitTree
from tqforge.series.lock import Shelf


def run(ctx: Context, *, base_name: str | None = None, patches: Path | None = None, out: Path | None = None) -> int:
    """Write the pack. Raises PatchError when lint has findings."""
    base = load_base(base_name)
    shelf = Shelf.of(base.name, patches)
    with ctx.workspace.lock("tqforge pr"):
        if findings := lint.check(ctx, base, shelf):
            first = findings[0]
            raise PatchError(
                f"lint has {len(findings)} findings, the first: {first.patch or 'series'}: {first.message}.",
                where=str(shelf.folder),
                remedy="Run `tqforge patch lint` and mend them.",
            )
        chosen = series.load(shelf.folder)
        repository, commit = source.ensure_base(ctx.workspace, ctx.out, base, source.ARCHIVE)
        with tempfile.TemporaryDirectory(prefix="tqforge-pr-") as scratch:
            with apply.aside(repository, "pr", commit) as work:
                applied = apply.commit_series(repository, work, chosen)
            parts = split(repository, commit, chosen, applied, Path(scratch))
        trees = [part.tree for part in parts]
        private = (str(ctx.workspace.root), str(Path.home()), tempfile.gettempdir())
        runs = evidence.collect(ctx.workspace.runs, trees, private)
        known = rules.load(resources.third_party() / "upstream_rules.toml")
        tree = CommitTree(repository, commit)
        blobs = {document.path: repository.resolve(f"{commit}:{document.path}") for document in known.documents}
        states = {**evidence.states(runs), **_of_parts(parts)}
        checklist = rules.checklist(known, tree, blobs, states, runs.stale)
        files = bundle.files(base, parts, runs, checklist, tree.read(bundle.TEMPLATE))
        folder = _write(out or ctx.workspace.runs / "pr" / trees[-1][:12], files)
    missing = [line for line in checklist.splitlines() if line.startswith("- [ ]")]
    ctx.out.show("\n".join(f"{part.name}: {len(part.pieces)} patches, tree {part.tree}" for part in parts))
    ctx.out.show(f"{len(known.rules) - len(missing)} of {len(known.rules)} rules filled; see {folder / 'CHECKLIST.md'}")
    ctx.out.document(
        {
            "folder": str(folder),
            "parts": [
                {"name": part.name, "tree": part.tree, "patches": [p.file for p in part.pieces]} for part in parts
            ],
            "files": sorted(files),
            "missing": [line.removeprefix("- [ ] ") for line in missing],
            "stale": list(runs.stale),
        }
    )
    return 0


def _of_parts(parts: tuple[Part, ...]) -> dict[str, State]:
    first = parts[0]
    touched = [piece.title for piece in first.pieces if b" b/tests/test-backend-ops.cpp\n" in piece.data]
    return {
        "split": State(first.name == CPU, f"parts/: {', '.join(part.name for part in parts)}"),
        "cases": State(bool(touched), f"in {', '.join(touched)}" if touched else "missing: no patch adds cases"),
    }


def _write(folder: Path, files: dict[str, bytes]) -> Path:
    """The whole pack or nothing; a folder that holds something else is left alone."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "SHA256SUMS").is_file():
        raise ConfigError("The folder holds something else.", where=str(folder), remedy="Choose another --out.")
    with fs.atomic_dir(folder) as fresh:
        for name, data in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder
