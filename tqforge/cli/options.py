"""Options that several verbs share, with their tab completion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tqforge.core.cache_types import CACHE_TYPES

#: Panels of the help of verbs with many options.
MEASURE, RECOMMEND, BUILD = "What to measure", "Recommendation", "Build under test"


def complete_base(incomplete: str) -> list[str]:
    """Complete the name of a base."""
    from tqforge.base.pins import base_names

    return [name for name in base_names() if name.startswith(incomplete)]


def complete_pair(incomplete: str) -> list[str]:
    """Complete the last of several pairs: `q8` to `q8_0`, `q8_0/` to `q8_0/f16`, ..."""
    *done, last = incomplete.split(",")
    k, slash, _ = last.partition("/")
    options = [f"{k}/{v}" for v in CACHE_TYPES] if slash else list(CACHE_TYPES)
    return [",".join([*done, option]) for option in options if option.startswith(last)]


def complete_model(incomplete: str) -> list[str]:
    """Complete the name of a pinned model; the shell completes file names."""
    from tqforge.base.pins import load_models

    return [name for name in load_models()[1] if name.startswith(incomplete)]


def complete_stage(incomplete: str) -> list[str]:
    """Complete the name of a stage."""
    from tqforge.verify.registry import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


BaseOption = Annotated[
    str | None,
    typer.Option(
        "--base",
        "-b",
        help="Base to use, as named in bases.toml.",
        metavar="NAME",
        show_default="the default of bases.toml",
        autocompletion=complete_base,
    ),
]
MetalOption = Annotated[
    bool | None,
    typer.Option("--metal/--no-metal", help="Enable or disable Metal.", show_default="on Apple silicon"),
]
NativeOption = Annotated[
    bool | None,
    typer.Option(
        "--native/--portable",
        help="Optimize for this CPU, or build for any CPU.",
        show_default="native; portable after a native build crashed here",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Folder to write to.",
        metavar="DIR",
        show_default="in the workspace",
        file_okay=False,
    ),
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="Model to use: a name from models.toml, or a GGUF file. May be repeated.",
        metavar="MODEL",
        show_default="the default of models.toml",
        autocompletion=complete_model,
        rich_help_panel=MEASURE,
    ),
]
PairsOption = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        help="K/V pairs, e.g. q8_0,q8_0/tq3_0; f16 is always added.",
        metavar="PAIRS",
        autocompletion=complete_pair,
        rich_help_panel=MEASURE,
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads",
        "-t",
        min=1,
        help="Number of threads that llama.cpp uses.",
        metavar="N",
        show_default="physical cores",
        rich_help_panel=BUILD,
    ),
]
LibraryOption = Annotated[
    Path | None,
    typer.Option(
        "--library",
        help="Test the libraries in this folder instead of a build of tqforge.",
        metavar="DIR",
        file_okay=False,
        exists=True,
        rich_help_panel=BUILD,
    ),
]
BindingsOption = Annotated[
    Path | None,
    typer.Option(
        "--bindings",
        help="Folder with the llama_cpp package that matches --library.",
        metavar="DIR",
        file_okay=False,
        exists=True,
        rich_help_panel=BUILD,
    ),
]
