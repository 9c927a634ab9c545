"""A tiny model of random weights in which every second layer has a sliding window (the shape of gemma2)."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WINDOW, LAYERS, EMBEDDING, HEADS, KV_HEADS, HEAD, FEED, VOCABULARY = 512, 4, 256, 4, 2, 64, 512, 320


def write(path: Path) -> Path:
    """The GGUF; it has no tokenizer."""
    writer = gguf.GGUFWriter(path, "gemma2")
    writer.add_name("sliding")
    writer.add_context_length(32768)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_sliding_window(WINDOW)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("none")
    rng = np.random.default_rng(0)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(f"{name}.weight", rng.normal(0, 0.02, shape).astype(np.float32))

    add("token_embd", VOCABULARY, EMBEDDING)
    add("output_norm", EMBEDDING)
    for layer in range(LAYERS):
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            add(f"blk.{layer}.{norm}", EMBEDDING)
        add(f"blk.{layer}.attn_q", HEADS * HEAD, EMBEDDING)
        add(f"blk.{layer}.attn_k", KV_HEADS * HEAD, EMBEDDING)
        add(f"blk.{layer}.attn_v", KV_HEADS * HEAD, EMBEDDING)
        add(f"blk.{layer}.attn_output", EMBEDDING, HEADS * HEAD)
        add(f"blk.{layer}.ffn_gate", FEED, EMBEDDING)
        add(f"blk.{layer}.ffn_up", FEED, EMBEDDING)
        add(f"blk.{layer}.ffn_down", EMBEDDING, FEED)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
