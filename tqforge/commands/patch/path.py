"""`tqforge patch path`: print the path of the checkout."""

from __future__ import annotations

from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.errors import CheckoutError


def run(ctx: Context, *, base_name: str | None = None) -> int:
    """Print the path on one line. Raises CheckoutError when there is no checkout."""
    path = ctx.workspace.checkout(load_base(base_name).name)
    if not (path / ".git").exists():
        raise CheckoutError("There is no checkout.", where=str(path), remedy="Run `tqforge patch apply` first.")
    ctx.out.lines(str(path))
    ctx.out.document({"checkout": str(path)})
    return 0
