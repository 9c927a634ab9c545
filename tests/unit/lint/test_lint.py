"""Each rule finds what it is there for, and nothing in a good series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tqforge import resources
from tqforge.domain import lint, lock, series
from tqforge.domain.lint import content, metal
from tqforge.domain.lint.cmachine import Machine
from tqforge.domain.lint.csubset import CError, parse_function
from tqforge.domain.lint.subject import Finding, Subject, load_settings
from tqforge.domain.lock import LockedBase, LockedPatch, Shelf

ID = "0" * 40
GOOD = f"""From {ID} Mon Sep 17 00:00:00 2001
From: tqforge <tqforge@localhost>
Date: Thu, 1 Oct 2026 00:00:00 +0000
Subject: [PATCH] ggml : add a thing

Because.

Patch-Name: ggml-thing
Why: the thing is needed
Upstream-Status: Pending
Guard: test-thing all

diff --git a/ggml/src/ggml.c b/ggml/src/ggml.c
index {ID}..{"1" * 40} 100644
--- a/ggml/src/ggml.c
+++ b/ggml/src/ggml.c
@@ -1,3 +1,4 @@
 int a;
+int thing;
 int b;
 int c;
"""

#: What is changed in the good patch, and the one finding it gives.
BAD: dict[str, tuple[str, str, str]] = {
    "no guard": ("Guard: test-thing all\n", "", "'Guard:' is missing"),
    "other name": ("Patch-Name: ggml-thing", "Patch-Name: ggml-other", "does not agree with the file name"),
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


def make(folder: Path, text: str = GOOD, name: str = "ggml-thing") -> Subject:
    shelf = Shelf.of("toy", folder / "patches")
    shelf.folder.mkdir(exist_ok=True)
    (shelf.folder / f"{name}.patch").write_bytes(text.encode())
    (shelf.folder / "series").write_text(f"{name}.patch\n")
    loaded = series.load(shelf.folder)
    entries = tuple(LockedPatch(name=p.name, sha256=p.sha256, patch_id=ID, tree=ID) for p in loaded.patches)
    table = lock.Lock(schema=1, bases={"toy": LockedBase(tree=ID, final=ID, patches=entries)})
    shelf.lock.write_text(lock.render(table))
    settings = load_settings(resources.third_party() / "lint.toml")
    return Subject(shelf=shelf, base="toy", series=loaded, settings=settings)


def test_a_good_series_has_no_finding_and_says_what_it_could_not_do(tmp_path: Path) -> None:
    findings, deferred = lint.check(make(tmp_path))
    assert findings == []
    assert {item.rule for item in deferred} == {"type-ids", "block-layout", "metal-kernels"}


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
    (subject.shelf.folder / "stray.patch").write_text(GOOD)
    (subject.shelf.folder / "notes.txt").write_text("x")
    subject.shelf.lock.write_text("schema = 1\n")
    text = "\n".join(item.message for item in lint.check(subject)[0])
    for message in ("not in the series", "is no part of a series", "the lock has no entry"):
        assert message in text
    (subject.shelf.folder / "series").write_text("")
    empty = replace(subject, series=series.load(subject.shelf.folder))
    assert "is empty" in "\n".join(item.message for item in lint.check(empty)[0])


def test_a_name_without_scope(tmp_path: Path) -> None:
    text = GOOD.replace("ggml-thing", "other-thing")
    assert "declares no scope" in lint.check(make(tmp_path, text, "other-thing"))[0][0].message


@dataclass
class FakeTree:
    files: dict[str, str]

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def names(self, folder: str) -> list[str]:
        return sorted(path for path in self.files if path.startswith(folder + "/"))


ENUM = "enum ggml_type {{\n F32 = 0, // a, b\n F16, /* x */\n OLD = 42,\n {0}\n GGML_TYPE_COUNT = {1},\n}};\n"
BLOCK = """#define QK_TQ3_0 32
typedef struct {
    ggml_half d;                  // scale
    uint8_t qs[3 * QK_TQ3_0 / 8]; // codes
} block_tq3_0;
"""
SUPPORTS = """
bool ggml_metal_device_supports_op(ggml_metal_device_t dev, const struct ggml_tensor * op) {
    const bool has_simdgroup_mm = dev->props.has_simdgroup_mm;
    /* only whole blocks */
    for (size_t i = 0, n = 3; i < n; ++i) {
        if (op->src[i] != NULL && op->src[i]->type == GGML_TYPE_BF16) {
            return false;
        }
    }
    switch (op->op) {
        case GGML_OP_NONE:
            return true;
        case GGML_OP_FLASH_ATTN_EXT:
            if (op->src[0]->ne[0] != 64 && op->src[0]->ne[0] != 128) {
                return false;
            }
            if (op->src[1]->type != op->src[2]->type || op->src[1]->ne[0] != op->src[2]->ne[0]) {
                return false;
            }
            switch (op->src[1]->type) {
                case GGML_TYPE_F16:
                case GGML_TYPE_TQ3_0:
                    break;
                default:
                    return false;
            }
            return has_simdgroup_mm;
        case GGML_OP_CPY:
            return op->src[0]->type == GGML_TYPE_F32 ? op->type == GGML_TYPE_TQ3_0 : false;
        case GGML_OP_SET_ROWS:
            return op->src[0]->type == GGML_TYPE_F32 && ggml_is_contiguous(op);
        case GGML_OP_GET_ROWS:
            return op->src[0]->type != GGML_TYPE_F32;
        default:
            return false;
    }
}
"""
KERNELS = [
    "cpy_f32_tq3_0",
    "get_rows_tq3_0",
    *(f"set_rows_f32_{index}_tq3_0" for index in ("i32", "i64")),
    "flash_attn_ext_kv_tq3_0_f16",
    *(f"flash_attn_ext{vec}_tq3_0_dk{size}_dv{size}" for vec in ("", "_vec") for size in (64, 128)),
    *(f"flash_attn_ext_f16_dk{size}_dv{size}" for size in (64, 128)),
]
OPS = "enum ggml_op { GGML_OP_NONE = 0, GGML_OP_CPY, GGML_OP_MUL_MAT, GGML_OP_FLASH_ATTN_EXT, GGML_OP_COUNT };\n"


def patched(**changes: str) -> FakeTree:
    types = ENUM.format("GGML_TYPE_F32 = 50, GGML_TYPE_F16 = 51, GGML_TYPE_TQ3_0 = 63,", 64)
    kernels = "".join(f'template [[host_name("kernel_{name}")]] kernel x;\n' for name in KERNELS)
    files = {
        "header": types + OPS,
        "common": BLOCK,
        "constants": "GGMLQuantizationType.TQ3_0:   (32, 2 + 12),\n",
        "device": SUPPORTS,
        "kernels": kernels,
    } | changes
    paths = {
        "header": content.HEADER,
        "common": content.COMMON,
        "constants": content.GGUF_CONSTANTS,
        "device": metal.DEVICE,
        "kernels": f"{metal.FOLDER}/kernels/fa.metal",
    }
    return FakeTree({paths[key]: text for key, text in files.items()})


def before() -> FakeTree:
    return FakeTree({content.HEADER: ENUM.format("GGML_TYPE_F32 = 50, GGML_TYPE_F16 = 51,", 52) + OPS})


def findings(folder: Path, after: FakeTree, **snapshots: FakeTree) -> list[Finding]:
    subject = replace(make(folder), before=before(), after=after, snapshots=snapshots)
    found, deferred = lint.check(subject)
    assert deferred == []
    return found


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
    newer = FakeTree({content.HEADER: ENUM.format("GGML_TYPE_NEXT = 63,", 64)})
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            (
                "int f(int a) {\n int s = 0;\n for (int i = 0; i < 4; i++) { if (i == a) { continue; } s = s + i; }"
                " return s;\n}\n"
            ),
            4,
        ),
        (
            (
                "int f(int a) {\n switch (a) { case 1: return 5; case 2: case 3: break; default: return 7; }"
                " return 9 - -a;\n}\n"
            ),
            11,
        ),
        ("int f(int a) {\n const size_t b = (size_t) a % 2; return !b ? 10 : a >= 2 && g(a);\n}\n", 10),
    ],
)
def test_the_machine(text: str, value: int) -> None:
    assert Machine({}).run(parse_function(text, "f"), {"a": 2}) == value


def test_the_machine_refuses_what_it_does_not_know() -> None:
    with pytest.raises(CError, match="there is no function"):
        parse_function("", "f")
    with pytest.raises(CError, match="without a return"):
        Machine({}).run(parse_function("int f(int a) {\n a = 1;\n}\n", "f"), {"a": 2})
    with pytest.raises(CError, match="does not end"):
        Machine({}).run(
            parse_function("int f(int a) {\n for (;a;) { }\n}\n".replace("(;a;)", "(int i = 1; i; i)"), "f"), {}
        )
