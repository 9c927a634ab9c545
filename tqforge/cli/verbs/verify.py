"""`tqforge verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.cli.app import JsonFlag, context_of, finish
from tqforge.cli.options import BaseOption, MetalOption, complete_pair


def _complete_model(incomplete: str) -> list[str]:
    from tqforge.domain.manifest import load_models

    return [name for name in load_models()[1] if name.startswith(incomplete)]


def _complete_stage(incomplete: str) -> list[str]:
    from tqforge.domain.verify.settings import STAGES

    return [name for name in STAGES if name.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    @app.command()
    def verify(  # noqa: PLR0917 - one parameter per option
        ctx: typer.Context,
        model: Annotated[
            str | None,
            typer.Option(
                "--model", "-m", help="A name from models.toml, or a GGUF file.", autocompletion=_complete_model
            ),
        ] = None,
        pairs: Annotated[
            str | None,
            typer.Option(help="K/V pairs, as f16,q8_0/tq3_0 (f16 is always added).", autocompletion=complete_pair),
        ] = None,
        lengths: Annotated[str | None, typer.Option(help="Prompt lengths in tokens, as 512,2k,4096.")] = None,
        depths: Annotated[str | None, typer.Option(help="Where the needle lies, as 0.1,0.5,0.9.")] = None,
        seeds: Annotated[
            int | None, typer.Option(min=1, max=100, help="How many facts are hidden, one at a time.")
        ] = None,
        stage: Annotated[
            list[str] | None, typer.Option(help="Only this stage; may be repeated.", autocompletion=_complete_stage)
        ] = None,
        full: Annotated[
            bool, typer.Option("--full/--quick", help="A few minutes on two cores, or the grid for your own model.")
        ] = False,
        base: BaseOption = None,
        metal: MetalOption = None,
        threads: Annotated[int | None, typer.Option("--threads", "-t", min=1, help="Threads of llama.cpp.")] = None,
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Folder of the report (else in the workspace).", file_okay=False),
        ] = None,
        library: Annotated[
            Path | None, typer.Option(help="Another build's library folder.", file_okay=False, exists=True)
        ] = None,
        bindings: Annotated[
            Path | None,
            typer.Option(help="Folder with the llama_cpp package that fits --library.", file_okay=False, exists=True),
        ] = None,
        json: JsonFlag = False,
    ) -> None:
        """Prove what the built library does: source, codec, memory, needles, quality."""
        from tqforge.commands import verify as command
        from tqforge.domain.verify import settings

        chosen = settings.customized(
            settings.FULL if full else settings.QUICK,
            pairs=settings.parse_pairs(pairs) if pairs else None,
            lengths=settings.parse_lengths(lengths) if lengths else None,
            depths=settings.parse_depths(depths) if depths else None,
            seeds=tuple(range(seeds)) if seeds else None,
            stages=settings.choose_stages(stage) if stage else None,
            threads=threads,
        )
        where = command.Where(base=base, model=model, metal=metal, library=library, bindings=bindings, out=out)
        finish(command.run(context_of(ctx, json=json), chosen, where))
