"""Read what a GGUF file says about its model, without loading it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tqforge.errors import ModelError

_AGAIN = "Download the file again, and compare its sha256 with the publisher's."
_MAGIC = b"GGUF"


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """The geometry of a model's KV cache, and what a prompt needs. `kv_heads` and `swa` are per layer."""

    path: Path
    size: int
    name: str
    arch: str
    layers: int
    heads: int
    kv_heads: tuple[int, ...]
    head_k: int
    head_v: int
    trained_context: int
    vocabulary: int
    swa_window: int | None
    mla: bool
    recurrent: bool
    chat_template: str | None
    bos: str
    eos: str
    bos_id: int | None
    weights: int = 0  # bytes of all tensors
    rotary: bool = False  # positions are rotations, so that any number of them can be made

    @property
    def k_width(self) -> int:
        """Number of K values per token, over all layers."""
        return self.head_k * sum(self.kv_heads)

    @property
    def v_width(self) -> int:
        """Number of V values per token, over all layers; MLA stores no separate V."""
        return 0 if self.mla else self.head_v * sum(self.kv_heads)


class Fields:
    """Typed access to the key-value pairs of one file."""

    def __init__(self, get: Callable[[str], Any], arch: str) -> None:
        self._get, self._arch = get, arch

    def raw(self, key: str) -> Any:
        return self._get(key.replace("{arch}", self._arch))

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.raw(key)
        if value is None and default is None:
            raise ModelError(f"The GGUF has no key '{key.replace('{arch}', self._arch)}'.")
        return int(np.max(value)) if value is not None else int(default or 0)

    def optional(self, key: str) -> int | None:
        value = self.raw(key)
        return None if value is None else int(np.max(value))

    def per_layer(self, key: str, layers: int, default: int) -> tuple[int, ...]:
        value = self.raw(key)
        if isinstance(value, list | tuple | np.ndarray):
            return tuple(int(item) for item in value)[:layers]
        return (int(default if value is None else value),) * layers

    def text(self, key: str) -> str:
        return str(self.raw(key) or "")


def read(path: Path) -> ModelFacts:
    """Read a file. Raises ModelError if it is missing, truncated, not a GGUF, or of a model without attention."""
    _check_magic(path)
    try:
        reader = gguf.GGUFReader(path)
        arch_field = reader.get_field("general.architecture")
        arch = str(arch_field.contents()) if arch_field else ""
        tokens = reader.get_field("tokenizer.ggml.tokens")
        vocabulary = len(tokens.data) if tokens else 0
        end = max((t.data_offset + t.n_bytes for t in reader.tensors), default=0)
    except ModelError:
        raise
    except Exception as error:  # the reader has no error class of its own
        what = f"The GGUF is truncated or damaged: {type(error).__name__}: {error}"
        raise ModelError(what, where=str(path), remedy=_AGAIN) from error
    size = path.stat().st_size
    if end > size:
        what = f"The GGUF is truncated: its tensors end at byte {end}, the file at {size}."
        raise ModelError(what, where=str(path), remedy=_AGAIN)

    def value(key: str) -> Any:
        field = reader.get_field(key)
        return field.contents() if field else None

    def token(key: str) -> str:
        index = value(key)
        return "" if index is None or tokens is None else str(tokens.contents(int(index)))

    specials = {"bos": token("tokenizer.ggml.bos_token_id"), "eos": token("tokenizer.ggml.eos_token_id")}
    try:
        found = facts(Fields(value, arch), arch, path=path, size=size, vocabulary=vocabulary, **specials)
    except ModelError as error:
        raise ModelError(error.what, where=str(path), remedy="Use the GGUF of a transformer model.") from error
    return replace(found, weights=sum(tensor.n_bytes for tensor in reader.tensors))


def facts(fields: Fields, arch: str, *, path: Path, size: int, vocabulary: int, bos: str, eos: str) -> ModelFacts:
    """Return the facts that the fields of a file state."""
    if not arch:
        raise ModelError("The GGUF does not name its architecture.")
    layers = fields.integer("{arch}.block_count")
    heads = fields.integer("{arch}.attention.head_count")
    embedding = fields.integer("{arch}.embedding_length")
    head = embedding // heads if heads else 0
    latent = fields.optional("{arch}.attention.kv_lora_rank")
    return ModelFacts(
        path=path,
        size=size,
        name=fields.text("general.name") or path.stem,
        arch=arch,
        layers=layers,
        heads=heads,
        kv_heads=fields.per_layer("{arch}.attention.head_count_kv", layers, heads),
        head_k=fields.integer("{arch}.attention.key_length", head),
        head_v=fields.integer("{arch}.attention.value_length", head),
        trained_context=fields.integer("{arch}.context_length"),
        vocabulary=vocabulary,
        swa_window=fields.optional("{arch}.attention.sliding_window") or None,
        mla=latent is not None and fields.optional("{arch}.attention.key_length_mla") is not None,
        recurrent=fields.optional("{arch}.ssm.state_size") is not None
        or fields.optional("{arch}.wkv.head_size") is not None,
        chat_template=fields.text("tokenizer.chat_template") or None,
        bos=bos,
        eos=eos,
        bos_id=fields.optional("tokenizer.ggml.bos_token_id"),
        rotary=fields.optional("{arch}.rope.dimension_count") is not None
        or fields.raw("{arch}.rope.freq_base") is not None,
    )


def _check_magic(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise ModelError(f"The model cannot be read: {error.strerror}.", where=str(path)) from error
    if magic != _MAGIC:
        raise ModelError(
            "The file is not a GGUF.", where=str(path), remedy="Pass a .gguf file, or a name from models.toml."
        )
