"""The rewriting rules, the cutting out of supports_op and the comparison of the source lists, on small texts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from emulator_tools import tool

rewrite = tool("rewrite")
extract = tool("extract")
sources = tool("sources")


def rewritten(text: str) -> str:
    return str(rewrite.rewrite(text, "x.metal", Counter()))


def test_an_instantiation_is_registered_under_its_host_name() -> None:
    text = 'template [[host_name("kernel_a")]] kernel a_t kernel_a_impl<float,\n 4>;\n'
    assert (
        rewritten(text)
        == 'template a_t kernel_a_impl<float, 4>; METAL_EMULATOR_KERNEL("kernel_a", kernel_a_impl<float, 4>)\n\n'
    )


def test_a_repeated_signature_is_only_registered() -> None:
    text = 'template [[host_name("k")]] kernel void f<1>(device float * x, uint i[[thread_position_in_grid]]);\n'
    assert rewritten(text) == 'METAL_EMULATOR_KERNEL("k", f<1>)\n'


def test_function_constants_threadgroup_arguments_and_variables() -> None:
    assert (
        rewritten("constant bool FC [[function_constant(A + 1)]];\n") == "METAL_EMULATOR_CONSTANT(bool, FC, A + 1);\n"
    )
    assert (
        rewritten("  threadgroup half * s [[threadgroup(0)]],\n")
        == "  threadgroup half * s [[metal_emulator_group_memory(0)]],\n"
    )
    assert rewritten("    threadgroup float sh[N][2];\n") == "    METAL_EMULATOR_GROUP_VARIABLE(float, sh, [N][2]);\n"
    assert rewritten("    threadgroup float * p = s;\n") == "    threadgroup float * p = s;\n"


def test_plain_kernels_are_registered_at_the_end() -> None:
    text = '[[host_name("other")]]\nkernel void f() {}\ntemplate <int N>\nkernel void g() {}\nkernel void h() {}\n'
    lines = rewritten(text).splitlines()
    assert lines[-2:] == ['METAL_EMULATOR_KERNEL("other", f)', 'METAL_EMULATOR_KERNEL("h", h)']
    assert lines[:5] == ["", *text.splitlines()[1:]]


@pytest.mark.parametrize(
    "text",
    [
        "  int x [[threadgroup (0)]];\n",
        'template [[host_name("k")]] struct x;\n',
        "static constant bool FC [[function_constant(1)]];\n",
        "    threadgroup float sh[N], other[N];\n",
    ],
)
def test_what_no_rule_understands_is_an_error(text: str) -> None:
    with pytest.raises(rewrite.RewriteError, match=r"x\.metal:1"):
        rewritten(text)


def test_a_comment_needs_no_rule() -> None:
    text = "//constant float FC [[function_constant(1)]];\n/* threadgroup float\n sh[3]; */\n"
    assert rewritten(text) == text


def test_a_rule_that_stops_matching_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.metal").write_text("kernel void f() {}\n")
    with pytest.raises(rewrite.RewriteError, match="instantiation: 0 matches"):
        rewrite.rewrite_tree(tmp_path / "in", tmp_path / "out", "", True)


def test_dropped_instantiations_leave_their_lines() -> None:
    text = 'template [[host_name("keep")]] kernel t f<1>;\ntemplate [[host_name("drop")]] kernel t f<\n2>;\nint x;\n'
    kept = rewrite.drop_instantiations(text, rewrite.re.compile("keep"))
    assert kept.splitlines() == ['template [[host_name("keep")]] kernel t f<1>;', "", "", "int x;"]


DEVICE_M = """#import "ggml-impl.h"
static bool ggml_metal_helper(int x) {
    return x;
}
static bool ggml_metal_unrelated(int x) {
    return [x foo];
}
bool ggml_metal_device_supports_op(ggml_metal_device_t dev, const struct ggml_tensor * op) {
    return ggml_metal_helper(1);
}
"""


def test_supports_op_comes_with_its_helpers() -> None:
    text = extract.extract(DEVICE_M, "device.m")
    assert text.index("ggml_metal_helper(int") < text.index("ggml_metal_device_supports_op(")
    assert "unrelated" not in text
    assert '#line 2 "device.m"' in text
    assert text.startswith('#include "ggml-impl.h"')


def test_objective_c_in_a_helper_is_refused() -> None:
    with pytest.raises(LookupError, match="Objective-C"):
        extract.extract(DEVICE_M.replace("return x;", "return [x foo];"), "device.m")


def metal_folder(
    root: Path, *, table: str = "X(A, a) \\\n X(B, b)", cmake: str = "kernels/a.metal kernels/b.metal"
) -> Path:
    (root / "kernels").mkdir()
    (root / "kernels/a.metal").write_text('#include "common.h"\n')
    (root / "kernels/b.metal").write_text('#include "b_common.metal"\n')
    (root / "kernels/b_common.metal").write_text("")
    (root / "ggml-metal-device.m").write_text(f"#define GGML_METAL_LIBS \\\n {table}\n\nenum x {{}};\n")
    (root / "CMakeLists.txt").write_text(f"set(METALLIB_KERNEL_SOURCES {cmake})\n# embeds common.h b_common.metal\n")
    return root


def test_lists_that_agree(tmp_path: Path) -> None:
    assert sources.kernel_sources(metal_folder(tmp_path)) == {"a", "b"}


def test_a_source_missing_in_a_list_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        sources.SourceError, match=r"b: on disk, not in the table of ggml-metal-device\.m, in CMakeLists"
    ):
        sources.kernel_sources(metal_folder(tmp_path, table="X(A, a)"))


def test_an_include_that_is_not_embedded_is_named(tmp_path: Path) -> None:
    root = metal_folder(tmp_path)
    (root / "kernels/a.metal").write_text('#include "new.h"\n')
    with pytest.raises(sources.SourceError, match=r"a\.metal includes new\.h"):
        sources.kernel_sources(root)


def test_selection_of_sources() -> None:
    assert sources.select({"a", "b"}, ["b", "c?"]) == ["b"]
    assert sources.select({"a", "b"}, []) == ["a", "b"]
    with pytest.raises(sources.SourceError, match="no such kernel source: c"):
        sources.select({"a"}, ["c"])
