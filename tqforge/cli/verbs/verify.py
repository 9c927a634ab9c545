"""`tqforge verify`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import (
    MEASURE,
    RECOMMEND,
    BaseOption,
    BindingsOption,
    LibraryOption,
    MetalOption,
    ModelOption,
    OutOption,
    PairsOption,
    ThreadsOption,
    complete_stage,
)


def verify(  # noqa: PLR0917 - one parameter per option
    ctx: typer.Context,
    model: ModelOption = None,
    pairs: PairsOption = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="Measure more lengths, pairs and stages, or take a few minutes.",
            rich_help_panel=MEASURE,
        ),
    ] = False,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this stage. May be repeated.",
            metavar="STAGE",
            autocompletion=complete_stage,
            rich_help_panel=MEASURE,
        ),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(
            help="Prompt lengths in tokens, e.g. 512,2k,4096.",
            metavar="LIST",
            show_default="512; with --full 512,2k,4k",
            rich_help_panel=MEASURE,
        ),
    ] = None,
    depths: Annotated[
        str | None,
        typer.Option(
            help="Needle depths, as fractions of the prompt.",
            metavar="LIST",
            show_default="0.1,0.5,0.9",
            rich_help_panel=MEASURE,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="Number of needles per length and depth.",
            metavar="N",
            show_default="3",
            rich_help_panel=MEASURE,
        ),
    ] = None,
    prefixes: Annotated[
        str | None,
        typer.Option(
            help="Context lengths at which quality is scored, in tokens.",
            metavar="LIST",
            show_default="512; with --full 512,1536,4k",
            rich_help_panel=MEASURE,
        ),
    ] = None,
    rotations: Annotated[
        bool | None,
        typer.Option(
            "--rotations/--no-rotations",
            help="Also measure stock types with llama.cpp's rotation disabled.",
            show_default="part of --full",
            rich_help_panel=MEASURE,
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            help="Memory to recommend a pair for, e.g. 16GB. May be repeated.",
            metavar="SIZE",
            rich_help_panel=RECOMMEND,
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="Context length to recommend a pair for.",
            metavar="TOKENS",
            show_default="32k, or the model's limit",
            rich_help_panel=RECOMMEND,
        ),
    ] = None,
    base: BaseOption = None,
    metal: MetalOption = None,
    threads: ThreadsOption = None,
    library: LibraryOption = None,
    bindings: BindingsOption = None,
    out: OutOption = None,
    json: JsonFlag = False,
) -> None:
    """Verify the built library (memory, needle retrieval, quality, ...) and recommend a K/V pair. Takes minutes."""
    from tqforge.commands import verify as command
    from tqforge.verify import registry, settings
    from tqforge.verify.request import Request

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
    request = Request(base=base, models=tuple(model or ()), metal=metal, library=library, bindings=bindings, out=out)
    finish(command.run(context_of(ctx, json=json), settings.labelled(profile, chosen), request))
