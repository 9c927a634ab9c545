"""A session without a model, for stages that are tested with fake children."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tqforge.adapters.console import Output
from tqforge.adapters.gguf_io import ModelFacts
from tqforge.report.schema.provenance import BuildProvenance
from tqforge.verify import settings
from tqforge.verify.session import Session, Target

FACTS = ModelFacts(
    path=Path("m.gguf"), size=1, name="m", arch="llama", layers=2, heads=9, kv_heads=(3, 3), head_k=64, head_v=64,
    trained_context=8192, vocabulary=10, swa_window=None, mla=False, recurrent=False, chat_template=None, bos="",
    eos="", bos_id=None,
)  # fmt: skip
KEYS = BuildProvenance(
    base="b", commit="", tree="", series_sha256="", preset="", flags=(), compiler="", stamp="", version=""
)


def session(tmp_path: Path) -> Session:
    target = Target(library=tmp_path, bindings=tmp_path, provenance=KEYS, gpu=False)
    chosen = replace(settings.QUICK, stages=("source", "codec"))
    return Session(out=Output(quiet=True), target=target, settings=chosen, facts=FACTS, folder=tmp_path)
