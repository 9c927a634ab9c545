"""The variants of the vec attention kernels that tuning may choose, and the kernels that are wanted for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lint_series import KERNELS, findings, patched

from tqforge.series.lint import kernels
from tqforge.series.lint.supports_op.syntax import CError
from tqforge.series.lint.supports_op.tuning import Variants

TUNING = """
int fa_vec_baseline_ne(int dk, int dv) {
    if (dk == 64 && dv == 64) {
        return 2;
    }
    return 4;
}

// { family, dtype, dk, dv, ne11 bucket, ne01 bucket }
constexpr fa_vec_entry_t fa_vec_tuned_table[] = {
    { { 7, GGML_TYPE_F16, 64, 64, -1, 0 }, { 1, 2 } },
    { { 7, GGML_TYPE_F16, 64, 64, 1, 1 }, { 2, 4 } },
    { { 10, GGML_TYPE_TQ3_0, 128, 128, 3, 4 }, { 4, 1 } },
};

fa_vec_cfg_t fa_vec_pick(int gpu_family, int dtype, int dk, int dv, int64_t ne11, int64_t ne01) {
    if (g_override_set) {
        return g_override_cfg;
    }
    if (dtype == GGML_TYPE_TQ3_0) {
        return { 1, 4 };
    }
    return baseline;
}
"""
DISPATCH = "auto cfg = fa_vec_pick(dev->gpu_family, (int) op->src[2]->type, (int) ne00, (int) ne20, ne11, ne01);"
F16, Q8_0, TQ3_0 = "GGML_TYPE_F16", "GGML_TYPE_Q8_0", "GGML_TYPE_TQ3_0"


@pytest.mark.parametrize(
    ("types", "size", "suffixes"),
    [
        ((TQ3_0, TQ3_0), 64, ["", "_q1_ne4"]),
        ((Q8_0, TQ3_0), 64, ["", "_q1_ne4"]),
        ((TQ3_0, TQ3_0), 96, [""]),  # NE 4 is its baseline
        ((TQ3_0, TQ3_0), 128, ["", "_q4_ne1"]),
        ((F16, F16), 64, ["", "_q2_ne4"]),
        ((TQ3_0, Q8_0), 128, [""]),
    ],
)
def test_the_type_of_v_chooses(types: tuple[str, str], size: int, suffixes: list[str]) -> None:
    assert Variants(TUNING, DISPATCH).suffixes(types, size, size) == suffixes


def test_the_type_of_k_chooses_where_the_dispatch_says_so() -> None:
    variants = Variants(TUNING, DISPATCH.replace("src[2]", "src[1]"))
    assert variants.suffixes((Q8_0, TQ3_0), 64, 64) == [""]
    assert variants.suffixes((TQ3_0, Q8_0), 64, 64) == ["", "_q1_ne4"]


def test_a_type_of_the_type_table_has_one_variant_only() -> None:
    table = f"constexpr struct {{ int dtype; }} fa_vec_type_table[] = {{\n    {{ {TQ3_0}, {{ 1, 4 }} }},\n}};\n"
    variants = Variants(table + TUNING, DISPATCH)
    assert variants.suffixes((Q8_0, TQ3_0), 64, 64) == ["_q1_ne4"]
    assert variants.suffixes((TQ3_0, TQ3_0), 96, 96) == [""]  # NE 4 is its baseline
    assert variants.suffixes((F16, F16), 64, 64) == ["", "_q2_ne4"]


def test_a_tree_without_tuning_has_no_variants() -> None:
    assert Variants("", "").suffixes((TQ3_0, TQ3_0), 64, 64) == [""]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{ 7, GGML_TYPE_F16, 64, 64, 1, 1 }", "{ 7, GGML_TYPE_F16, 64, DV, 1, 1 }"),
        ("return g_override_cfg;", "return { 1, 1 };"),
        ("fa_vec_tuned_table[]", "other_table[]"),
        ("fa_vec_pick(", "fa_vec_choose("),
        ("fa_vec_baseline_ne(", "fa_vec_other("),
    ],
)
def test_what_cannot_be_read_is_an_error(old: str, new: str) -> None:
    assert old in TUNING
    with pytest.raises(CError):
        Variants(TUNING.replace(old, new), DISPATCH)


def test_a_dispatch_that_chooses_by_something_else_is_an_error() -> None:
    with pytest.raises(CError, match="does not call fa_vec_pick"):
        Variants(TUNING, "")


SUPPORTS = """
bool ggml_metal_device_supports_op(ggml_metal_device_t dev, const struct ggml_tensor * op) {
    if (op->op != GGML_OP_FLASH_ATTN_EXT || op->src[0]->ne[0] != 64 || op->src[2]->ne[0] != 64) {
        return false;
    }
    return op->src[1]->type == GGML_TYPE_TQ3_0 && op->src[2]->type == GGML_TYPE_TQ3_0;
}
"""


@pytest.mark.parametrize("tuning", ["", TUNING])
def test_the_kernels_of_the_variants_are_wanted(tuning: str) -> None:
    answers = kernels.Answers(SUPPORTS, DISPATCH, tuning)
    wanted = {name for _, names in kernels.required(answers, TQ3_0, [F16, TQ3_0], []) for name in names}
    vec = {name for name in wanted if re.search("ext_vec", name)}
    plain = "kernel_flash_attn_ext_vec_tq3_0_dk64_dv64"
    assert vec == ({plain, f"{plain}_q1_ne4"} if tuning else {plain})


def test_a_missing_kernel_of_a_variant_is_found(tmp_path: Path) -> None:
    plain = "flash_attn_ext_vec_tq3_0_dk64_dv64"
    tree = patched()
    tree.files |= {kernels.TUNING: TUNING, kernels.DISPATCH: DISPATCH}
    place = f"{kernels.FOLDER}/kernels/fa.metal"
    names = [*KERNELS, f"{plain}_q1_ne4", "flash_attn_ext_vec_tq3_0_dk128_dv128_q4_ne1"]
    tree.files[place] = "".join(f'template [[host_name("kernel_{name}")]] kernel x;\n' for name in names)
    assert findings(tmp_path, tree) == []
    tree.files[place] = tree.files[place].replace(f'"kernel_{plain}_q1_ne4"', '"gone"')
    assert [item.message for item in findings(tmp_path, tree)] == [
        f"Metal's supports_op allows FLASH_ATTN_EXT K tq3_0 (64), V tq3_0 (64), but there is no kernel_{plain}_q1_ne4"
    ]
