"""Each rule finds what it is there for, and nothing in a good series."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lint_series import BLOCK, ENUM, GOOD, KERNELS, OPS, SUPPORTS, FakeTree, findings, make, patched

from tqforge.series import lint, series
from tqforge.series.lint import ids_and_layout
from tqforge.series.lint import kernels as metal

#: What is changed in the good patch, and the one finding it gives.
BAD: dict[str, tuple[str, str, str]] = {
    "no guard": ("Guard: test-thing all\n", "", "'Guard:' is missing"),
    "other name": ("Patch-Name: ggml-thing", "Patch-Name: ggml-other", "does not match the file name"),
    "subject": ("ggml : add a thing", "Add a thing", "is not 'area : what'"),
    "white space only": (" int a;\n+int thing;\n", "-int a;\n+int  a;\n+\n", "only white space in ggml/src/ggml.c"),
    "binary": (
        "--- a/ggml/src/ggml.c\n",
        "GIT binary patch\n--- a/ggml/src/ggml.c\n",
        "binary change of ggml/src/ggml.c",
    ),
    "crlf": ("+int thing;\n", "+int thing;\r\n", "lines that end in CRLF"),
    "trailing space": ("+int thing;\n", "+int thing; \n", "white space at the end of a line"),
    "not ascii": ("Because.", "Becaus\u00e9.", "characters outside ASCII"),
    "line not ascii": ("+int thing;\n", "+int thing; // \u00e9\n", "characters outside ASCII"),
    "machine path": ("+int thing;", '+include "/home/me/thing.h"', "a path of a machine: /home/me"),
    "outside scope": ("ggml/src/ggml.c", "src/llama.cpp", "outside the scope of 'ggml-*'"),
    "cut": (" int b;\n int c;\n", " int b;\n", "not a well-formed patch"),
    "no file": (GOOD[GOOD.index("diff --git") :], "", "it changes no file"),
    "mode only": (GOOD[GOOD.index("index ") :], "old mode 100644\nnew mode 100755\n", "changes only the mode"),
}


def test_a_good_series_has_no_finding_and_names_the_rules_that_could_not_run(tmp_path: Path) -> None:
    findings, skipped = lint.check(make(tmp_path))
    assert findings == []
    assert {item.rule for item in skipped} == {"type-ids", "block-layout", "metal-kernels"}


@pytest.mark.parametrize("name", BAD)
def test_each_defect_is_found(tmp_path: Path, name: str) -> None:
    old, new, message = BAD[name]
    assert old in GOOD
    findings, _ = lint.check(make(tmp_path, GOOD.replace(old, new)))
    assert message in "\n".join(item.message for item in findings)
    assert all(item.remedy and item.rule for item in findings)
    assert len(findings) == 1


def test_series_folder_and_lock_agree(tmp_path: Path) -> None:
    subject = make(tmp_path)
    (subject.paths.folder / "stray.patch").write_text(GOOD)
    (subject.paths.folder / "notes.txt").write_text("x")
    subject.paths.lock.write_text("schema = 1\n")
    text = "\n".join(item.message for item in lint.check(subject)[0])
    for message in ("not in the series", "does not belong to a series", "the lock has no entry"):
        assert message in text
    (subject.paths.folder / "series").write_text("")
    empty = replace(subject, series=series.load(subject.paths.folder))
    assert "is empty" in "\n".join(item.message for item in lint.check(empty)[0])


def test_a_name_without_scope(tmp_path: Path) -> None:
    text = GOOD.replace("ggml-thing", "other-thing")
    assert "has no scope" in lint.check(make(tmp_path, text, "other-thing"))[0][0].message


def test_a_good_tree(tmp_path: Path) -> None:
    assert findings(tmp_path, patched()) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [(42, "is OLD in the base"), (54, "next 8 ids after the base"), (36, "a published TurboQuant fork")],
)
def test_type_ids(tmp_path: Path, value: int, message: str) -> None:
    text = ENUM.format(f"GGML_TYPE_F32 = 50, GGML_TYPE_F16 = 51, GGML_TYPE_TQ3_0 = {value},", max(value, 51) + 1) + OPS
    assert message in "\n".join(item.message for item in findings(tmp_path, patched(header=text)))


def test_type_ids_against_a_newer_upstream(tmp_path: Path) -> None:
    newer = FakeTree({ids_and_layout.HEADER: ENUM.format("GGML_TYPE_NEXT = 63,", 64)})
    found = findings(tmp_path, patched(), **{"1.1": newer})
    assert [item.message for item in found] == ["GGML_TYPE_TQ3_0 = 63 is GGML_TYPE_NEXT in 1.1"]


def test_count(tmp_path: Path) -> None:
    text = ENUM.format("GGML_TYPE_F32 = 50, GGML_TYPE_F16 = 51, GGML_TYPE_TQ3_0 = 63,", 63) + OPS
    assert findings(tmp_path, patched(header=text))[0].message == "GGML_TYPE_COUNT is 63, the largest type is 63"


@pytest.mark.parametrize(
    ("part", "old", "new", "message"),
    [
        ("common", "3 * QK_TQ3_0 / 8", "4 * QK_TQ3_0 / 8", "('qs', 16)"),
        ("common", "ggml_half d;", "", "[('qs', 12)]"),
        ("common", "uint8_t qs", "struct x qs", "layout cannot be read"),
        ("constants", "2 + 12", "2 + 14", "gguf-py gives (32, 16)"),
        ("constants", "TQ3_0", "TQ2_0", "gguf-py gives None"),
        ("kernels", "template", "struct block_tq3_0 { half d; };\ntemplate", "a block_tq3_0 of its own"),
    ],
)
def test_layout(tmp_path: Path, part: str, old: str, new: str, message: str) -> None:
    text = {"common": BLOCK, "constants": "GGMLQuantizationType.TQ3_0:   (32, 2 + 12),\n"}.get(part)
    text = text or patched().read(f"{metal.FOLDER}/kernels/fa.metal") or ""
    assert message in "\n".join(
        item.message for item in findings(tmp_path, patched(**{part: text.replace(old, new, 1)}))
    )


@pytest.mark.parametrize("name", KERNELS)
def test_each_missing_kernel_is_found(tmp_path: Path, name: str) -> None:
    text = (patched().read(f"{metal.FOLDER}/kernels/fa.metal") or "").replace(f'"kernel_{name}"', '"gone"')
    found = findings(tmp_path, patched(kernels=text))
    assert found
    assert all(f"there is no kernel_{name}" in item.message for item in found)


def test_an_operation_without_a_kernel_for_the_type(tmp_path: Path) -> None:
    text = SUPPORTS.replace("case GGML_OP_NONE:", "case GGML_OP_NONE:\n        case GGML_OP_MUL_MAT:")
    assert [item.message for item in findings(tmp_path, patched(device=text))] == [
        "Metal's supports_op allows MUL_MAT with tq3_0 as first source, but there is no kernel_mul_mv_tq3_0_f32"
    ]


USE_F16 = """
static bool ggml_metal_op_flash_attn_ext_use_kv_f16(const ggml_tensor * op) {
    assert(op->op == GGML_OP_FLASH_ATTN_EXT);

    if (op->src[2]->type == GGML_TYPE_TQ3_0 && op->src[0]->ne[0] >= 128) {
        return !ggml_metal_op_flash_attn_ext_use_vec(op);
    }
    return op->src[0]->ne[1] >= 32;
}
"""


def test_a_matrix_kernel_is_wanted_only_where_the_dispatch_asks_for_it(tmp_path: Path) -> None:
    lines = (patched().read(f"{metal.FOLDER}/kernels/fa.metal") or "").splitlines(keepends=True)
    without = patched(kernels="".join(line for line in lines if "ext_tq3_0_dk128" not in line))
    assert len(findings(tmp_path, without)) == 1
    without.files[metal.DISPATCH] = USE_F16
    assert findings(tmp_path, without) == []
    lines = [line for line in lines if "ext_tq3_0_dk64" not in line]
    needed = patched(kernels="".join(lines))
    needed.files[metal.DISPATCH] = USE_F16
    assert len(findings(tmp_path, needed)) == 1


def test_a_type_that_no_tensor_has_needs_no_kernels() -> None:
    entry = '    [GGML_TYPE_Q8_TQ3] = {{\n        .type_name = "q8_tq3",\n{}    }},\n'
    assert not metal.is_stored(FakeTree({metal.TRAITS: entry.format("")}), "GGML_TYPE_Q8_TQ3")
    stored = entry.format("        .to_float = f,\n")
    assert metal.is_stored(FakeTree({metal.TRAITS: stored}), "GGML_TYPE_Q8_TQ3")
