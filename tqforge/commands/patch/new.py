"""`tqforge patch new`: commit the changes in the checkout as one patch with its trailers."""

from __future__ import annotations

from tqforge.adapters.git import FIXED_DATE, Repository
from tqforge.base.pins import load_base
from tqforge.context import Context
from tqforge.errors import CheckoutError, UsageError
from tqforge.series import trailers


def run(
    ctx: Context, title: str, *, subject: str, body: str, values: dict[str, str], base_name: str | None = None
) -> int:
    """Commit all changes with fixed identity and date. `values` holds Why, Upstream-Status and Guard."""
    base = load_base(base_name)
    complete = {trailers.NAME: title, **values}
    if found := trailers.problems(list(complete.items()), title):
        raise UsageError(f"Invalid trailers: {'; '.join(found)}.", remedy="Correct them and run the command again.")
    repository = Repository(ctx.workspace.checkout(base.name))
    with ctx.workspace.lock("tqforge patch new"):
        if not repository.exists() or not (changes := repository.changes()):
            raise CheckoutError(
                "The checkout has no changes.",
                where=str(repository.path),
                remedy="Run `tqforge patch apply`, edit the files in the checkout, then run this again.",
            )
        text = trailers.message(subject, body, complete)
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "--no-verify", "-F", "-", stdin=text, env=FIXED_DATE)
    commit = repository.resolve("HEAD")
    ctx.out.show(f"{commit[:12]} {subject} ({len(changes)} files)\nnext: tqforge patch export")
    ctx.out.document({"commit": commit, "name": title, "files": [line[3:] for line in changes]})
    return 0
