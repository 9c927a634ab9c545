"""A good patch, a good patched tree and the subject made of them, for the tests of the lint rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tqforge import resources
from tqforge.series import lint, lock, series
from tqforge.series.lint import ids_and_layout, kernels
from tqforge.series.lint.subject import Finding, Subject, load_settings
from tqforge.series.lock import LockedBase, LockedPatch, SeriesPaths

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


def make(folder: Path, text: str = GOOD, name: str = "ggml-thing") -> Subject:
    paths = SeriesPaths.of("toy", folder / "patches")
    paths.folder.mkdir(exist_ok=True)
    (paths.folder / f"{name}.patch").write_bytes(text.encode())
    (paths.folder / "series").write_text(f"{name}.patch\n")
    loaded = series.load(paths.folder)
    entries = tuple(LockedPatch(name=p.name, sha256=p.sha256, patch_id=ID, tree=ID) for p in loaded.patches)
    table = lock.Lock.model_validate({"schema": 1, "bases": {"toy": LockedBase(tree=ID, final=ID, patches=entries)}})
    paths.lock.write_text(lock.render(table))
    settings = load_settings(resources.third_party() / "lint.toml")
    return Subject(paths=paths, base="toy", series=loaded, settings=settings)


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
    instances = "".join(f'template [[host_name("kernel_{name}")]] kernel x;\n' for name in KERNELS)
    files = {
        "header": types + OPS,
        "common": BLOCK,
        "constants": "GGMLQuantizationType.TQ3_0:   (32, 2 + 12),\n",
        "device": SUPPORTS,
        "kernels": instances,
    } | changes
    paths = {
        "header": ids_and_layout.HEADER,
        "common": ids_and_layout.COMMON,
        "constants": ids_and_layout.GGUF_CONSTANTS,
        "device": kernels.DEVICE,
        "kernels": f"{kernels.FOLDER}/kernels/fa.metal",
    }
    return FakeTree({paths[key]: text for key, text in files.items()})


def before() -> FakeTree:
    return FakeTree({ids_and_layout.HEADER: ENUM.format("GGML_TYPE_F32 = 50, GGML_TYPE_F16 = 51,", 52) + OPS})


def findings(folder: Path, after: FakeTree, **snapshots: FakeTree) -> list[Finding]:
    subject = replace(make(folder), before=before(), after=after, snapshots=snapshots)
    found, deferred = lint.check(subject)
    assert deferred == []
    return found
