"""`tqforge patch ...`: the patch life cycle."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.errors import UsageError

BaseOption = Annotated[str | None, typer.Option("--base", "-b", help="Base by name (default: the one of bases.toml).")]
PatchesOption = Annotated[
    Path | None,
    typer.Option("--patches", help="Series folder of your own instead of tqforge's.", exists=True, file_okay=False),
]
SourceOption = Annotated[
    str, typer.Option("--source", help="archive, git, an address, or a folder, repository or archive that you have.")
]
RepositoryOption = Annotated[
    Path | None, typer.Option("--repository", help="Take the commits from here.", exists=True, file_okay=False)
]
RevisionOption = Annotated[str, typer.Option("--revision", help="The last commit of the series.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Apply, export and check the patch series.", no_args_is_help=True)
    app.add_typer(group, name="patch")
    _apply(group)
    _export(group)
    _new(group)
    _lint(group)
    _drift(group)
    _prove(group)


def _apply(group: typer.Typer) -> None:
    @group.command()
    def apply(
        ctx: typer.Context,
        *,
        base: BaseOption = None,
        source: SourceOption = "archive",
        patches: PatchesOption = None,
        discard: Annotated[bool, typer.Option("--discard", help="Throw your changes in the checkout away.")] = False,
        write_lock: Annotated[bool, typer.Option("--write-lock", help="Record the result as the lock.")] = False,
        go_on: Annotated[bool, typer.Option("--continue", help="Go on after resolving the parked patch.")] = False,
        skip: Annotated[bool, typer.Option("--skip", help="Drop the parked patch and go on.")] = False,
        abort: Annotated[bool, typer.Option("--abort", help="Throw the parked patch away.")] = False,
        json: JsonFlag = False,
    ) -> None:
        """Bring the checkout to the base with its whole series, each patch one commit."""
        from tqforge.commands.patch import apply as command

        if go_on + skip + abort > 1:
            raise UsageError("--continue, --skip and --abort exclude each other.")
        context = context_of(ctx, json=json)
        if abort:
            finish(command.abort(context, base_name=base))
        if go_on or skip:
            finish(command.go_on(context, base_name=base, patches=patches, skip=skip))
        finish(
            command.run(context, base_name=base, source=source, patches=patches, discard=discard, write_lock=write_lock)
        )


def _export(group: typer.Typer) -> None:
    @group.command()
    def export(
        ctx: typer.Context,
        *,
        base: BaseOption = None,
        patches: PatchesOption = None,
        repository: RepositoryOption = None,
        revision: RevisionOption = "HEAD",
        check: Annotated[bool, typer.Option("--check", help="Only compare; exit 1 on a difference.")] = False,
        json: JsonFlag = False,
    ) -> None:
        """Write the commits of the checkout as patch files, series and lock."""
        from tqforge.commands.patch import export as command

        context = context_of(ctx, json=json)
        if check:
            finish(command.check(context, base_name=base, patches=patches))
        finish(command.run(context, base_name=base, patches=patches, repository=repository, revision=revision))

    @group.command()
    def refresh(
        ctx: typer.Context,
        *,
        base: BaseOption = None,
        patches: PatchesOption = None,
        repository: RepositoryOption = None,
        revision: RevisionOption = "HEAD",
        json: JsonFlag = False,
    ) -> None:
        """As export, but leave files alone whose change is the same and only moved."""
        from tqforge.commands.patch import export as command

        context = context_of(ctx, json=json)
        finish(
            command.run(context, base_name=base, patches=patches, repository=repository, revision=revision, moved=False)
        )


def _new(group: typer.Typer) -> None:
    @group.command()
    def new(
        ctx: typer.Context,
        name: Annotated[str, typer.Argument(help="Name of the patch, without .patch.")],
        *,
        subject: Annotated[str | None, typer.Option("--subject", help="First line, as `area : what`.")] = None,
        body: Annotated[str, typer.Option("--body", help="A few factual lines.")] = "",
        why: Annotated[str | None, typer.Option("--why", help="The defect or need in one sentence.")] = None,
        status: Annotated[str, typer.Option("--status", help="Upstream-Status.")] = "Pending",
        guard: Annotated[str | None, typer.Option("--guard", help="The test that is red without it.")] = None,
        base: BaseOption = None,
        json: JsonFlag = False,
    ) -> None:
        """Make one patch of the changes in the checkout; asks for the trailers that are not given."""
        from tqforge.commands.patch import new as command

        values = {
            "Why": _asked("--why", why, "Why (the defect or need in one sentence)"),
            "Upstream-Status": status,
            "Guard": _asked("--guard", guard, "Guard (the test that is red without it)"),
        }
        first = _asked("--subject", subject, "Subject (area : what)")
        context = context_of(ctx, json=json)
        finish(command.run(context, name, subject=first, body=body, values=values, base_name=base))


def _lint(group: typer.Typer) -> None:
    @group.command()
    def lint(
        ctx: typer.Context, *, base: BaseOption = None, patches: PatchesOption = None, json: JsonFlag = False
    ) -> None:
        """Check the rules of the series: trailers, type ids, kernels, layout, scope. Exit 1 on a finding."""
        from tqforge.commands.patch import lint as command

        finish(command.run(context_of(ctx, json=json), base_name=base, patches=patches))


def _drift(group: typer.Typer) -> None:
    @group.command()
    def drift(
        ctx: typer.Context,
        *,
        to: Annotated[
            list[str],
            typer.Option("--to", help="Archive version, folder, full commit id or ADDRESS#REVISION; may be repeated."),
        ],
        base: BaseOption = None,
        patches: PatchesOption = None,
        out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for drift.md and drift.json.")] = None,
        json: JsonFlag = False,
    ) -> None:
        """Try the series on other llama.cpp states: per patch clean, moved, merged, upstream, or why not."""
        from tqforge.commands.patch import drift as command

        finish(command.run(context_of(ctx, json=json), to, base_name=base, patches=patches, out=out))


def _prove(group: typer.Typer) -> None:
    @group.command()
    def prove(
        ctx: typer.Context,
        *,
        patch: Annotated[list[str] | None, typer.Option("--patch", help="Only this patch; may be repeated.")] = None,
        prefixes: Annotated[bool, typer.Option("--prefixes/--no-prefixes", help="Build and test every prefix.")] = True,
        guards: Annotated[bool, typer.Option("--guards/--no-guards", help="Run the guards without each patch.")] = True,
        jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compilers at once.")] = None,
        base: BaseOption = None,
        patches: PatchesOption = None,
        json: JsonFlag = False,
    ) -> None:
        """Build every prefix, and show that each guard turns red without its patch. Goes on where it stopped."""
        from tqforge.commands.patch import prove as command

        finish(
            command.run(
                context_of(ctx, json=json),
                base_name=base,
                patches=patches,
                only=patch or (),
                prefixes=prefixes,
                guards=guards,
                jobs=jobs,
            )
        )


def _asked(option: str, value: str | None, question: str) -> str:
    """The value of an option, asked for when it is not given and there is a person to ask."""
    if value is not None:
        return value
    if not sys.stdin.isatty():
        raise UsageError(f"{option} is missing.", remedy=f"Give {option}, or run it in a terminal to be asked.")
    return str(typer.prompt(question, err=True))
