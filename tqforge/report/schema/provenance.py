"""Where a run's figures come from: machine, build, model and settings."""

from __future__ import annotations

from tqforge.report.schema.base import Record


class Machine(Record):
    """The machine that a run was measured on."""

    system: str
    release: str
    arch: str
    cpu: str
    cores: int
    memory: int
    python: str


class BuildProvenance(Record):
    """Source, settings and tools of the measured library."""

    base: str
    commit: str
    tree: str
    series_sha256: str
    preset: str
    flags: tuple[str, ...]
    compiler: str
    stamp: str
    version: str


class ModelProvenance(Record):
    """The model, as its GGUF file describes it."""

    name: str
    file: str
    sha256: str
    size: int
    arch: str
    layers: int
    heads: int
    kv_heads: int
    head_k: int
    head_v: int
    trained_context: int
    vocabulary: int
    swa_window: int | None = None
    mla: bool = False
    chat_template: bool = True


class RunSettings(Record):
    """Context settings, equal for all pairs of a run."""

    threads: int
    n_batch: int
    gpu_layers: int
    flash_attention: bool = True
