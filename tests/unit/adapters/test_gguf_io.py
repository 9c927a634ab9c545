from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from tqforge.adapters import gguf_io
from tqforge.adapters.gguf_io import ModelFacts
from tqforge.core.pair import Pair
from tqforge.errors import CacheTypeError, ContextLengthError, ModelError
from tqforge.verify.pairs import bits_per_value, check_lengths, check_model, check_pair
from tqforge.verify.stages.needle import chat_template

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<a>{% endif %}"
)
BLOCKS = {"f16": 1, "q8_0": 32, "q4_0": 32, "tq3_0": 32}


def write(path: Path, *, head: int = 64, **more: object) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_block_count(3)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_embedding_length(4 * head)
    writer.add_context_length(2048)
    writer.add_token_list(["<s>", "</s>", "a"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template(TEMPLATE)
    for name, value in more.items():
        writer.add_uint32(name.replace("__", "."), int(str(value)))
    writer.add_tensor("output.weight", np.zeros((64, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def facts(tmp_path: Path) -> ModelFacts:
    return gguf_io.read(write(tmp_path / "m.gguf"))


def test_facts_are_read(facts: ModelFacts) -> None:
    assert (facts.name, facts.arch, facts.layers, facts.heads, facts.kv_heads) == ("tiny", "llama", 3, 4, (2, 2, 2))
    assert (facts.head_k, facts.head_v, facts.trained_context, facts.vocabulary) == (64, 64, 2048, 3)
    assert (facts.bos, facts.eos, facts.bos_id, facts.swa_window, facts.mla) == ("<s>", "</s>", 0, None, False)
    assert (facts.k_width, facts.v_width) == (384, 384)


def test_sliding_window_and_mla_are_seen(tmp_path: Path) -> None:
    more = {
        "llama__attention__sliding_window": 512,
        "llama__attention__kv_lora_rank": 512,
        "llama__attention__key_length_mla": 192,
    }
    facts = gguf_io.read(write(tmp_path / "m.gguf", **more))
    assert (facts.swa_window, facts.mla, facts.v_width) == (512, True, 0)
    with pytest.raises(CacheTypeError, match="MLA"):
        check_pair(Pair("tq3_0", "tq3_0"), facts, BLOCKS)
    check_pair(Pair("f16", "f16"), facts, BLOCKS)


@pytest.mark.parametrize("keep", [4, 40, 400, -16])
def test_truncated_files(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError, match="truncated") as caught:
        gguf_io.read(path)
    assert caught.value.where == str(path)


def test_not_a_gguf_and_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"PK\x03\x04 zip")
    with pytest.raises(ModelError, match="not a GGUF"):
        gguf_io.read(tmp_path / "x")
    with pytest.raises(ModelError, match="cannot be read"):
        gguf_io.read(tmp_path / "y")


def test_pairs_that_fit_and_pairs_that_do_not(facts: ModelFacts, tmp_path: Path) -> None:
    for good in ("f16", "q8_0/tq3_0", "tq3_0"):
        check_pair(Pair.parse(good), facts, BLOCKS)
    with pytest.raises(CacheTypeError, match="'q2_K' of pair q2_K/f16 is no cache type"):
        check_pair(Pair.parse("q2_K/f16"), facts, {**BLOCKS, "q2_K": 256})
    with pytest.raises(CacheTypeError, match="'tq4_0' of pair q8_0/tq4_0 is not in the built library") as unknown:
        check_pair(Pair.parse("q8_0/tq4_0"), facts, BLOCKS)
    assert "f16, q8_0, q4_0, tq3_0" in unknown.value.remedy
    odd = gguf_io.read(write(tmp_path / "odd.gguf", head=80))
    with pytest.raises(CacheTypeError, match="K heads of this model have 80 values") as caught:
        check_pair(Pair.parse("tq3_0"), odd, BLOCKS)
    assert caught.value.remedy == "Choose from: f16."


def test_lengths_beyond_the_model(facts: ModelFacts) -> None:
    check_lengths([512, 2016], 32, facts)
    with pytest.raises(ContextLengthError, match="2048 the model was trained for") as caught:
        check_lengths([512, 2048], 32, facts)
    assert "2016" in caught.value.remedy


def test_a_recurrent_model_has_no_cache(facts: ModelFacts) -> None:
    check_model(facts)
    with pytest.raises(ModelError, match="recurrent"):
        check_model(replace(facts, recurrent=True))


def test_bits_per_value(facts: ModelFacts) -> None:
    table = {"q8_0": (32, 34), "tq3_0": (32, 14), "f16": (1, 2)}
    assert bits_per_value(Pair.parse("tq3_0"), facts, table) == 3.5
    assert bits_per_value(Pair.parse("q8_0/tq3_0"), facts, table) == 6.0
    assert bits_per_value(Pair.parse("f16"), replace(facts, mla=True), table) == 16


def test_the_template_is_split_around_the_message(facts: ModelFacts) -> None:
    template = chat_template.split(facts)
    assert (template.head, template.tail) == ("<s><user>", "</><a>")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('no system') }}", "does not render"),
        ("{% for", "does not render"),
        ("fixed", "does not show"),
        ("{{ messages[0].content }}{{ messages[0].content }}", "once"),
        (None, "no chat template"),
    ],
)
def test_templates_that_cannot_be_used(facts: ModelFacts, template: str | None, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        chat_template.split(replace(facts, chat_template=template))
