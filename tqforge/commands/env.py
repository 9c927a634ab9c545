"""`tqforge env`: what a shell exports to use the patched build."""

from __future__ import annotations

import shlex

from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.build.builder import Built
from tqforge.context import Context


def variables(built: Built) -> dict[str, str]:
    """What llama-cpp-python of the matching release reads."""
    return {"LLAMA_CPP_LIB_PATH": str(built.bin)}


def run(ctx: Context, *, base: str | None, metal: bool | None) -> int:
    """Print `export` lines, or the same as JSON."""
    pin = load_base(base)
    built = builder.find(ctx, pin.name, metal=metal)
    exports = variables(built)
    lines = [f'export PATH={shlex.quote(str(built.bin))}:"$PATH"']
    lines += [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
    lines.append(f"# the bindings that match: {pin.archive.project} {pin.archive.version}")
    ctx.out.lines(*lines)
    ctx.out.document(
        {
            "path": str(built.bin),
            "variables": exports,
            "bindings": f"{pin.archive.project}=={pin.archive.version}",
            "bindings_folder": str(ctx.workspace.bindings(pin.name)),
            "version": built.stamp.version,
        }
    )
    return 0
