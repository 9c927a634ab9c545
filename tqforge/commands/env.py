"""`tqforge env`: print the environment that makes a shell use the patched build."""

from __future__ import annotations

import shlex

from tqforge.base.pins import load_base
from tqforge.build import builder
from tqforge.context import Context


def run(ctx: Context, *, base: str | None, metal: bool | None) -> int:
    """Print `export` lines, or the variables as JSON."""
    pin = load_base(base)
    built = builder.find(ctx.workspace, pin.name, metal=metal)
    exports = built.variables
    lines = [f'export PATH={shlex.quote(str(built.bin))}:"$PATH"']
    lines += [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
    lines.append(f"# matching bindings: {pin.archive.project} {pin.archive.version}")
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
