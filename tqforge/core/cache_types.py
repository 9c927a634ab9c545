"""Names of the K/V cache types, and the block layout of the one that the series adds."""

from __future__ import annotations

from typing import Final

TQ3_0: Final = "tq3_0"
#: Values per block, and bytes per block: 12 bytes of 3-bit codes and an fp16 scale.
TQ3_0_BLOCK: Final = 32
TQ3_0_BLOCK_BYTES: Final = 14
#: Types without blocks: the only ones that MLA models are tested with.
UNQUANTIZED: Final = ("f16", "bf16", "f32")
#: What llama.cpp accepts as a cache type, with the series applied.
CACHE_TYPES: Final = (*UNQUANTIZED, "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", TQ3_0)
