"""`tqforge patch new`: the changes in the checkout become one commit with its trailers."""

from __future__ import annotations

from tqforge.adapters.git import FIXED_DATE, Repository
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.errors import CheckoutError, UsageError
from tqforge.series import trailers


def run(
    ctx: Context, title: str, *, subject: str, body: str, values: dict[str, str], base_name: str | None = None
) -> int:
    """Commit everything that changed, with fixed identity and date. `values` holds Why, Upstream-Status and Guard."""
    base = load_base(base_name)
    complete = {trailers.NAME: title, **values}
    if found := trailers.problems(list(complete.items()), title):
        raise UsageError(
            f"The patch cannot be made: {'; '.join(found)}.", remedy="Give the command again with these corrected."
        )
    repository = Repository(ctx.workspace.checkout(base.name))
    with ctx.workspace.lock("tqforge patch new"):
        if not repository.exists() or not (changes := repository.changes()):
            raise CheckoutError(
                "The checkout has no changes to make a patch of.",
                where=str(repository.path),
                remedy="Run `tqforge patch apply`, change the files in the checkout, then run this again.",
            )
        text = trailers.message(subject, body, complete)
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "--no-verify", "-F", "-", stdin=text, env=FIXED_DATE)
    commit = repository.resolve("HEAD")
    ctx.out.show(f"{commit[:12]} {subject} ({len(changes)} files)\nnext: tqforge patch export")
    ctx.out.document({"commit": commit, "name": title, "files": [line[3:] for line in changes]})
    return 0
