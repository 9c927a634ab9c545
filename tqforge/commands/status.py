"""`tqforge status`: one screen about pin, series and workspace."""

from __future__ import annotations

from tqforge.context import Context
from tqforge.domain.manifest import load_base


def run(ctx: Context, base_name: str | None = None) -> int:
    """Print what is pinned."""
    base = load_base(base_name)
    ctx.out.show(f"base {base.name}: {base.title}\ncommit {base.commit}\ntree {base.tree}")
    ctx.out.show(f"workspace {ctx.workspace.root}")
    ctx.out.document(
        {"base": base.name, "commit": base.commit, "tree": base.tree, "workspace": str(ctx.workspace.root)}
    )
    return 0
