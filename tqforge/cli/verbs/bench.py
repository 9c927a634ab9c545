"""`tqforge bench`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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


def register(app: typer.Typer) -> None:
    @app.command()
    def bench(  # noqa: PLR0917 - one parameter per option
        ctx: typer.Context,
        model: ModelOption = None,
        pairs: PairsOption = None,
        depths: Annotated[str | None, typer.Option(help="Tokens in the cache, as 0,2k,4096.")] = None,
        prefill: Annotated[int | None, typer.Option(min=1, help="Tokens of the prompt read at each depth.")] = None,
        decode: Annotated[int | None, typer.Option(min=1, help="Tokens that are generated at each depth.")] = None,
        rounds: Annotated[int | None, typer.Option(min=1, max=100, help="How often each rate is taken.")] = None,
        llama_bench: Annotated[
            bool, typer.Option("--llama-bench/--no-llama-bench", help="Take the rates with llama-bench as well.")
        ] = True,
        beside: Annotated[
            Path | None,
            typer.Option(
                help="Library folder of another build: its pairs with tq3_0 take their turns in the same rounds.",
                file_okay=False,
                exists=True,
            ),
        ] = None,
        fills: Annotated[
            Path | None,
            typer.Option(help="Keep filled caches in this folder, and take them from there.", file_okay=False),
        ] = None,
        base: BaseOption = None,
        metal: MetalOption = None,
        threads: ThreadsOption = None,
        out: OutOption = None,
        library: LibraryOption = None,
        bindings: BindingsOption = None,
        json: JsonFlag = False,
    ) -> None:
        """Measure prefill, decode and both together at depth: all pairs, and another build, take turns in one run."""
        from tqforge.commands import verify as command
        from tqforge.verify import settings

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
        where = command.Where(
            base=base,
            models=tuple(model or ()),
            metal=metal,
            library=library,
            bindings=bindings,
            out=out,
            beside=beside,
            fills=fills,
        )
        finish(command.run(context_of(ctx, json=json), settings.labelled(profile, chosen), where))
