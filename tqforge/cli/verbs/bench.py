"""`tqforge bench`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.context import JsonFlag, context_of, finish
from tqforge.cli.options import (
    BUILD,
    MEASURE,
    BaseOption,
    BindingsOption,
    LibraryOption,
    MetalOption,
    ModelOption,
    OutOption,
    PairsOption,
    ThreadsOption,
)


def bench(  # noqa: PLR0917 - one parameter per option
    ctx: typer.Context,
    model: ModelOption = None,
    pairs: PairsOption = None,
    depths: Annotated[
        str | None,
        typer.Option(
            help="Cache depths to measure at, in tokens.",
            metavar="LIST",
            show_default="0,2k,4k,8k",
            rich_help_panel=MEASURE,
        ),
    ] = None,
    prefill: Annotated[
        int | None,
        typer.Option(
            min=1, help="Prompt tokens per prefill run.", metavar="N", show_default="512", rich_help_panel=MEASURE
        ),
    ] = None,
    decode: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens generated per decode run.", metavar="N", show_default="16", rich_help_panel=MEASURE
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="Number of measurement rounds.",
            metavar="N",
            show_default="5",
            rich_help_panel=MEASURE,
        ),
    ] = None,
    llama_bench: Annotated[
        bool,
        typer.Option("--llama-bench/--no-llama-bench", help="Also measure with llama-bench.", rich_help_panel=MEASURE),
    ] = True,
    base: BaseOption = None,
    metal: MetalOption = None,
    threads: ThreadsOption = None,
    library: LibraryOption = None,
    bindings: BindingsOption = None,
    compare_with: Annotated[
        Path | None,
        typer.Option(
            help="Benchmark the libraries in this folder too, in the same rounds.",
            metavar="DIR",
            file_okay=False,
            exists=True,
            rich_help_panel=BUILD,
        ),
    ] = None,
    cache_dir: Annotated[
        Path | None,
        typer.Option(help="Save and reuse prefilled KV caches.", metavar="DIR", file_okay=False, rich_help_panel=BUILD),
    ] = None,
    out: OutOption = None,
    json: JsonFlag = False,
) -> None:
    """Benchmark prefill and decode at several cache depths, interleaving all K/V pairs. Takes minutes."""
    from tqforge.commands import verify as command
    from tqforge.verify import settings
    from tqforge.verify.request import Request

    profile = settings.FULL
    chosen = replace(
        profile,
        stages=("speed",),
        pairs=settings.parse_pairs(pairs) if pairs else settings.DEFAULT_PAIRS,
        speed_depths=settings.parse_fills(depths) if depths else profile.speed_depths,
        speed_prefill=prefill or profile.speed_prefill,
        speed_decode=decode or profile.speed_decode,
        speed_rounds=rounds or profile.speed_rounds,
        speed_llama_bench=llama_bench,
        threads=threads or 0,
    )
    request = Request(
        base=base,
        models=tuple(model or ()),
        metal=metal,
        library=library,
        bindings=bindings,
        out=out,
        compare_with=compare_with,
        cache_dir=cache_dir,
    )
    finish(command.run(context_of(ctx, json=json), settings.labelled(profile, chosen), request))
