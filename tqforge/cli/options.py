"""Options that several verbs share, with their tab completion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.core.cache_types import CACHE_TYPES


def complete_base(incomplete: str) -> list[str]:
    """Bases whose name begins so."""
    from tqforge.base.pins import base_names

    return [name for name in base_names() if name.startswith(incomplete)]


def complete_pair(incomplete: str) -> list[str]:
    """`q8` gives `q8_0`, `q8_0/` gives `q8_0/f16`, ...; after a comma the next pair begins."""
    *done, last = incomplete.split(",")
    k, slash, _ = last.partition("/")
    options = [f"{k}/{v}" for v in CACHE_TYPES] if slash else list(CACHE_TYPES)
    return [",".join([*done, option]) for option in options if option.startswith(last)]


def complete_model(incomplete: str) -> list[str]:
    """Models of models.toml whose name begins so; files are the shell's own business."""
    from tqforge.base.pins import load_models

    return [name for name in load_models()[1] if name.startswith(incomplete)]


BaseOption = Annotated[
    str | None,
    typer.Option(
        "--base", "-b", help="Base of bases.toml (its default without).", metavar="NAME", autocompletion=complete_base
    ),
]
NativeOption = Annotated[
    bool | None,
    typer.Option(
        "--native/--portable",
        help="This CPU's own instructions, or those of most CPUs. Native, unless this CPU refused it before.",
    ),
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="A name from models.toml, or a GGUF file; may be repeated.",
        autocompletion=complete_model,
    ),
]
PairsOption = Annotated[
    str | None,
    typer.Option(help="K/V pairs, as f16,q8_0/tq3_0 (f16 is always added).", autocompletion=complete_pair),
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", "-t", min=1, help="Threads of llama.cpp.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder of the report (else in the workspace).", file_okay=False)
]
LibraryOption = Annotated[
    Path | None, typer.Option(help="Another build's library folder.", file_okay=False, exists=True)
]
BindingsOption = Annotated[
    Path | None,
    typer.Option(help="Folder with the llama_cpp package that fits --library.", file_okay=False, exists=True),
]
MetalOption = Annotated[
    bool | None,
    typer.Option(
        "--metal/--no-metal", help="With Metal, or for the CPU alone (the default is what the machine can do)."
    ),
]
