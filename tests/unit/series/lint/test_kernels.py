"""What supports_op allows, and the kernels that must exist for it."""

from __future__ import annotations

import pytest
from lint_series import SUPPORTS, FakeTree, patched

from tqforge.series.lint import kernels
from tqforge.series.lint.kernels import Answers, kernel_names, required, short

F16, F32, TQ3_0 = "GGML_TYPE_F16", "GGML_TYPE_F32", "GGML_TYPE_TQ3_0"


def supports(body: str) -> Answers:
    return Answers(
        "bool ggml_metal_device_supports_op(ggml_metal_device_t dev, const struct ggml_tensor * op) {\n"
        + body
        + "\n}\n"
    )


def wanted(body: str, ops: tuple[str, ...] = (), types: tuple[str, ...] = (F32, F16, TQ3_0)) -> dict[str, list[str]]:
    return dict(required(supports(body), TQ3_0, list(types), list(ops)))


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("GGML_TYPE_Q4_K", "q4_K"),
        ("GGML_TYPE_TQ3_0", "tq3_0"),
        ("GGML_TYPE_F16", "f16"),
        ("GGML_TYPE_IQ4_NL", "iq4_nl"),
    ],
)
def test_types_as_the_kernels_spell_them(name: str, spelled: str) -> None:
    assert short(name) == spelled


def test_kernel_names_come_from_all_metal_sources() -> None:
    files = {
        f"{kernels.FOLDER}/a.metal": '[[host_name("kernel_a")]] x;\n[[host_name( "kernel_b" )]] y;\n',
        f"{kernels.FOLDER}/kernels/c.h": '[[host_name("kernel_c")]] z;\n',
        f"{kernels.FOLDER}/d.cpp": '"host_name(\\"kernel_d\\")"',
        "other/e.metal": '[[host_name("kernel_e")]] x;\n',
    }
    assert kernel_names(FakeTree(files)) == {"kernel_a", "kernel_b", "kernel_c"}


def test_nothing_is_required_for_what_is_refused() -> None:
    assert wanted("return false;", ("GGML_OP_MUL_MAT", "GGML_OP_ADD")) == {}


@pytest.mark.parametrize("op", ["CPY", "DUP", "CONT"])
def test_copies_in_both_directions(op: str) -> None:
    found = wanted(f"return op->op == GGML_OP_{op} && op->src[0]->type == GGML_TYPE_TQ3_0;")
    assert found == {f"{op} tq3_0 to {other}": [f"kernel_cpy_tq3_0_{other}"] for other in ("f32", "f16", "tq3_0")}
    found = wanted(f"return op->op == GGML_OP_{op} && op->src[0]->type == GGML_TYPE_F32;")
    assert found == {f"{op} f32 to tq3_0": ["kernel_cpy_f32_tq3_0"]}


def test_rows() -> None:
    assert wanted("return op->op == GGML_OP_GET_ROWS;") == {"GET_ROWS tq3_0": ["kernel_get_rows_tq3_0"]}
    found = wanted("return op->op == GGML_OP_SET_ROWS && op->src[1]->type == GGML_TYPE_I64;")
    assert found == {
        f"SET_ROWS {source} to tq3_0 by i64": [f"kernel_set_rows_{source}_i64_tq3_0"] for source in ("f32", "f16")
    }


@pytest.mark.parametrize(
    ("condition", "pairs"),
    [
        ("op->src[1]->type == GGML_TYPE_TQ3_0 && op->src[2]->type == GGML_TYPE_TQ3_0", {"tq3_0"}),
        ("op->src[1]->type == GGML_TYPE_F16 && op->src[2]->type == GGML_TYPE_TQ3_0", {"f16_tq3_0"}),
        ("op->src[1]->type == GGML_TYPE_TQ3_0 && op->src[2]->type == GGML_TYPE_F16", {"tq3_0_f16"}),
    ],
)
def test_attention_by_pair(condition: str, pairs: set[str]) -> None:
    size = "op->src[0]->ne[0] == 64 && op->src[2]->ne[0] == 64"
    found = wanted(f"return op->op == GGML_OP_FLASH_ATTN_EXT && {condition} && {size};")
    names = {name for kernels in found.values() for name in kernels}
    for pair in pairs:
        assert f"kernel_flash_attn_ext_vec_{pair}_dk64_dv64" in names
    assert "kernel_flash_attn_ext_f16_dk64_dv64" in names  # with f16 copies
    assert "kernel_flash_attn_ext_kv_tq3_0_f16" in names
    assert ("kernel_flash_attn_ext_tq3_0_dk64_dv64" in names) is (pairs == {"tq3_0"})


def test_head_sizes_that_are_no_whole_blocks_cannot_occur() -> None:
    found = wanted("return op->op == GGML_OP_FLASH_ATTN_EXT && op->src[0]->ne[0] == 40;")
    assert found == {}
    assert wanted("return op->op == GGML_OP_FLASH_ATTN_EXT && op->src[0]->ne[0] == 96;")


def test_other_operations_by_their_name() -> None:
    body = "return (op->op == GGML_OP_MUL_MAT || op->op == GGML_OP_ADD) && op->type == GGML_TYPE_F32;"
    found = wanted(body, ("GGML_OP_MUL_MAT", "GGML_OP_ADD", "GGML_OP_NONE", "GGML_OP_CPY"))
    assert found == {
        "MUL_MAT with tq3_0 as first source": ["kernel_mul_mv_tq3_0_f32"],
        "ADD with tq3_0 as first source": ["kernel_add_tq3_0"],
    }


def test_helper_functions_are_run_as_well() -> None:
    helper = """static bool ggml_metal_supports_mul_mat_op(bool has_simdgroup_reduction, const struct ggml_tensor * op,
        bool src0_f16_has_mv, bool mm_path) {
    return op->src[0]->type != GGML_TYPE_TQ3_0;
}
"""
    body = "return op->op == GGML_OP_MUL_MAT && ggml_metal_supports_mul_mat_op(true, op, true, true);"
    text = (
        "bool ggml_metal_device_supports_op(ggml_metal_device_t dev, const struct ggml_tensor * op) {\n"
        + body
        + "\n}\n"
    )
    without, with_helper = Answers(text), Answers(helper + text)
    ops = ["GGML_OP_MUL_MAT"]
    assert dict(required(without, TQ3_0, [TQ3_0], ops))  # an unknown function answers true
    assert not dict(required(with_helper, TQ3_0, [TQ3_0], ops))


def test_the_sizes_and_types_that_the_text_names() -> None:
    answers = Answers(SUPPORTS)
    assert {64, 128} <= set(answers.sizes)
    assert {"GGML_TYPE_TQ3_0", "GGML_TYPE_F16"} <= answers.named


def test_a_type_without_entry_counts_as_stored() -> None:
    assert kernels.is_stored(FakeTree({}), TQ3_0)
    assert kernels.is_stored(patched(), TQ3_0)
