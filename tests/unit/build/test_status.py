from __future__ import annotations

import pytest

from tqforge.build.status import accepted_types

HELP = """
-ctk,  --cache-type-k TYPE              KV cache data type for K
                                        allowed values: f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0,
                                        q5_1, tq3_0
                                        (default: f16)
                                        (env: LLAMA_ARG_CACHE_TYPE_K)
-ctv,  --cache-type-v TYPE              KV cache data type for V
                                        allowed values: f32
                                        (default: f16)
"""


def test_the_programs_own_list_is_read() -> None:
    assert accepted_types(HELP) == ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1", "tq3_0")


@pytest.mark.parametrize("text", ["", "--cache-type-k TYPE", "allowed values: f16 (default: f16)"])
def test_a_help_without_it_gives_nothing(text: str) -> None:
    assert accepted_types(text) == ()
