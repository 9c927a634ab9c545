"""A llama of two layers with random weights, small enough to be executed kernel by kernel in a second."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, HEADS, KV_HEADS, HEAD, INNER, LAYERS = 128, 2, 1, 64, 256, 2
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
#: As many as a multiple of 64: upstream's matrix kernel writes vectors of four at any row length.
_WORDS = ["<unk>", "<s>", "</s>", *_BYTES, *(f"\u2581word{number}" for number in range(61))]


def write(path: Path, seed: int = 3) -> Path:
    """Write a model with f16 matrices, f32 norms and a vocabulary of bytes."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD)
    writer.add_vocab_size(len(_WORDS))
    _vocabulary(writer)

    def matrix(name: str, rows: int, columns: int, scale: float = 1.0) -> None:
        values = rng.standard_normal((rows, columns)) * scale / np.sqrt(columns)
        writer.add_tensor(f"{name}.weight", values.astype(np.float16))

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))

    matrix("token_embd", len(_WORDS), WIDTH, scale=10.0)
    for layer in range(LAYERS):
        norm(f"blk.{layer}.attn_norm")
        matrix(f"blk.{layer}.attn_q", WIDTH, WIDTH)
        matrix(f"blk.{layer}.attn_k", KV_HEADS * HEAD, WIDTH)
        matrix(f"blk.{layer}.attn_v", KV_HEADS * HEAD, WIDTH, scale=2.0)
        matrix(f"blk.{layer}.attn_output", WIDTH, WIDTH, scale=2.0)
        norm(f"blk.{layer}.ffn_norm")
        matrix(f"blk.{layer}.ffn_gate", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_up", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_down", WIDTH, INNER)
    norm("output_norm")
    matrix("output", len(_WORDS), WIDTH, scale=2.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _vocabulary(writer: gguf.GGUFWriter) -> None:
    normal, unknown, control, byte = 1, 2, 3, 6
    kinds = [unknown, control, control, *([byte] * 256), *([normal] * (len(_WORDS) - 259))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(_WORDS)
    writer.add_token_scores([-float(number) for number in range(len(_WORDS))])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
