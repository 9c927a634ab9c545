"""Requests about libraries, models, tokens and contexts."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters.llama.api.messages import Done, Message, Request

#: Offload every layer of a model to the device.
ALL_LAYERS = 999


class TypeInfo(Message):
    """A ggml type as the loaded library describes it: values and bytes of a block."""

    name: str
    id: int
    block: int
    bytes: int
    quantized: bool


class ContextSpec(Message):
    """The parameters of a context. Batch sizes are fixed because greedy answers depend on them.

    rotate: llama.cpp rotates K and V of its own quantized types. swa_full: layers with a sliding window keep all
    cells, not only the window. offload: attention and large batches run on the device.
    """

    k: str
    v: str
    n_ctx: int
    n_batch: int = 512
    threads: int = 2
    flash_attention: bool = True
    rotate: bool = True
    swa_full: bool = True
    offload: bool = True


class Loaded(Message):
    """A loaded library. declared: functions that the bindings declare. fields: checked default parameters."""

    library: str
    bindings: str
    declared: int
    fields: int
    system: str
    gpu: bool
    types: tuple[TypeInfo, ...]

    def blocks(self) -> dict[str, int]:
        """Return the block size of every type by name, in values."""
        return {info.name: info.block for info in self.types}

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the values and bytes of a block of every type by name."""
        return {info.name: (info.block, info.bytes) for info in self.types}


class Load(Request[Loaded]):
    """Load a library with its bindings, and a backend from a file of its own if one is named."""

    library: Path
    bindings: Path
    backend: Path | None = None
    device: str = ""


class ModelReport(Message):
    """A loaded model. weights: bytes that llama.cpp allocated for them."""

    n_vocab: int
    n_ctx_train: int
    n_swa: int
    recurrent: bool
    adds_bos: bool
    weights: int


class LoadModel(Request[ModelReport]):
    """Load a model and keep it until the next one."""

    path: Path
    gpu_layers: int


class TokenLists(Message):
    """The tokens of each text."""

    tokens: tuple[tuple[int, ...], ...]


class Tokenize(Request[TokenLists]):
    """Tokenize texts; special: control tokens in the text are parsed."""

    texts: tuple[str, ...]
    special: bool = False


class Opened(Message):
    """An open context. rotation: which sides (`k`, `v`) llama.cpp rotates, as its log says."""

    cells: int
    rotation: dict[str, bool]


class Open(Request[Opened]):
    """Open a context in place of the current one."""

    spec: ContextSpec


class Extend(Request[Done]):
    """Keep the first `keep` tokens of the context and append `tokens`."""

    keep: int
    tokens: tuple[int, ...]


class Generated(Message):
    """A greedy continuation. ended: the model ended it before the limit."""

    tokens: tuple[int, ...]
    text: str
    ended: bool


class Generate(Request[Generated]):
    """Continue greedily by at most `limit` tokens."""

    limit: int


class DeviceInfo(Message):
    """A backend device and its memory in bytes (with Metal: the working set)."""

    name: str
    gpu: bool
    free: int
    total: int


class DeviceList(Message):
    """The devices of all registered backends."""

    devices: tuple[DeviceInfo, ...]


class ListDevices(Request[DeviceList]):
    """List the backend devices."""


class CheckOrigin(Request[Done]):
    """Raise LoadError if a library of llama.cpp was loaded from elsewhere than `folder`."""

    folder: Path
