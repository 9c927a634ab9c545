"""`tqforge verify`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from tqforge.cli.app import JsonFlag, context_of, finish
from tqforge.cli.options import (
    BaseOption,
    BindingsOption,
    LibraryOption,
    MetalOption,
    ModelOption,
    OutOption,
    PairsOption,
    ThreadsOption,
)


def _complete_stage(incomplete: str) -> list[str]:
    from tqforge.verify.registry import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    @app.command()
    def verify(  # noqa: PLR0917 - one parameter per option
        ctx: typer.Context,
        model: ModelOption = None,
        pairs: PairsOption = None,
        lengths: Annotated[str | None, typer.Option(help="Prompt lengths in tokens, as 512,2k,4096.")] = None,
        depths: Annotated[str | None, typer.Option(help="Where the needle lies, as 0.1,0.5,0.9.")] = None,
        seeds: Annotated[
            int | None, typer.Option(min=1, max=100, help="How many facts are hidden, one at a time.")
        ] = None,
        prefixes: Annotated[
            str | None, typer.Option(help="Tokens of text before quality is scored, as 512,1536,4k.")
        ] = None,
        rotations: Annotated[
            bool | None,
            typer.Option(
                "--rotations/--no-rotations", help="Stock types also without llama.cpp's rotation (--full does)."
            ),
        ] = None,
        budget: Annotated[
            list[str] | None, typer.Option(help="Memory to recommend a pair for, as 16GB; may be repeated.")
        ] = None,
        context: Annotated[
            str | None, typer.Option(help="Tokens the recommendation is for (32k, or what the model has).")
        ] = None,
        stage: Annotated[
            list[str] | None, typer.Option(help="Only this stage; may be repeated.", autocompletion=_complete_stage)
        ] = None,
        full: Annotated[
            bool, typer.Option("--full/--quick", help="A few minutes on two cores, or the grid for your own model.")
        ] = False,
        base: BaseOption = None,
        metal: MetalOption = None,
        threads: ThreadsOption = None,
        out: OutOption = None,
        library: LibraryOption = None,
        bindings: BindingsOption = None,
        json: JsonFlag = False,
    ) -> None:
        """Prove what the built library does, and say which pair to take: memory, needles, quality and more."""
        from tqforge.commands import verify as command
        from tqforge.verify import registry, settings

        profile = settings.FULL if full else settings.QUICK
        chosen = replace(
            profile,
            pairs=settings.parse_pairs(pairs) if pairs else profile.pairs,
            lengths=settings.parse_lengths(lengths) if lengths else profile.lengths,
            depths=settings.parse_depths(depths) if depths else profile.depths,
            seeds=tuple(range(seeds)) if seeds else profile.seeds,
            quality_prefixes=settings.parse_prefixes(prefixes) if prefixes else profile.quality_prefixes,
            rotations=profile.rotations if rotations is None else rotations,
            budgets=tuple(settings.parse_size(size) for size in budget or ()),
            plan_context=settings.parse_lengths(context)[-1] if context else None,
            stages=registry.choose(stage or (), full=full),
            threads=threads or 0,
        )
        where = command.Where(
            base=base, models=tuple(model or ()), metal=metal, library=library, bindings=bindings, out=out
        )
        finish(command.run(context_of(ctx, json=json), settings.labelled(profile, chosen), where))
