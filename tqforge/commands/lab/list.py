"""`tqforge lab list`: the codecs, one line each."""

from __future__ import annotations

from tqforge.context import Context
from tqforge.lab.codecs.registry import CODECS, describe

_HEAD = 128


def run(ctx: Context) -> int:
    """Print every codec with its bits per value at a head size of 128."""
    rows = [(name, f"{one.bits_per_value(_HEAD):.3g}", describe(name)) for name, one in CODECS.items()]
    ctx.out.table(rows, head=("codec", "bits", "what it is"))
    ctx.out.document({"codecs": [{"name": name, "bits": float(bits), "what": what} for name, bits, what in rows]})
    return 0
