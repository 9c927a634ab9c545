"""The tree's kernels on the emulator: own cases with a float64 reference, and upstream's test-backend-ops."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from emulator_tools import METAL, Emulator, Report, Tree

STOCK = ["q4_0/q4_0", "q8_0/q8_0", "f16/f16"]
OWN = ["tq3_0/tq3_0", "q8_0/tq3_0", "f16/tq3_0"]
#: Pairs whose kernels differ from those of q8_0/tq3_0 in the type of K alone.
FURTHER = ["q5_0/tq3_0", "q4_0/tq3_0"]
#: What the name of a vec kernel ends with where its variant is not the one of upstream's baseline.
VARIANT = r"(_q\d_ne\d)?"


def require(tree: Tree, pair: str) -> None:
    for name in pair.split("/"):
        if not tree.has_type(name):
            pytest.skip(f"this tree has no type {name}")


def suites(pair: str, *names: str) -> list[str]:
    key, value = pair.split("/")
    rows = [] if key != value or key == "f16" else ["rows"]
    return [a for name in (names or (*rows, "vec", "matrix")) for a in ("--suite", name)]


def assert_clean(report: Report) -> None:
    assert report.code == 0, report.describe()
    assert not report.findings(), report.describe()
    assert report.dispatches, "nothing was dispatched"


@functools.cache
def run_cases(emulator: Emulator, pair: str, variant: str, order: str, family: str = "7") -> Report:
    return emulator.direct("--pair", pair, *suites(pair), variant=variant, order=order, family=family)


@pytest.mark.parametrize("pair", STOCK + OWN)
@pytest.mark.parametrize(("variant", "order"), [("check", "reverse"), ("check", "shuffle:1"), ("fast", "shuffle:2")])
def test_cases_agree_with_float64(emulator: Emulator, tree: Tree, pair: str, order: str, variant: str) -> None:
    require(tree, pair)
    report = run_cases(emulator, pair, variant, order)
    assert_clean(report)
    assert re.search(r"^[1-9]\d* cases, 0 failed$", report.output, re.M)


@pytest.mark.parametrize("variant", ["check", "fast"])
def test_the_encoder_writes_the_bytes_of_the_cpu(emulator: Emulator, tree: Tree, variant: str) -> None:
    """Rounding differs in one block of thousands, if at all; NaN, infinity and what has no scale have bytes too."""
    require(tree, "tq3_0/tq3_0")
    report = emulator.direct("--pair", "tq3_0/tq3_0", "--suite", "blocks", variant=variant)
    assert_clean(report)
    assert "CPY f32 to tq3_0: at the limits" in report.output
    assert sum(int(n) for n in re.findall(r"SET_ROWS.* in (\d+) blocks", report.output)) >= 50_000


@pytest.mark.parametrize("pair", ["q4_0/q4_0", *OWN])
@pytest.mark.parametrize("family", ["0", "8"])
def test_other_gpu_families(emulator: Emulator, tree: Tree, pair: str, family: str) -> None:
    """Nothing but the tuning table depends on the family, and it has no rows of TQ3_0: only q4_0 can vary.

    Family 7 is the default above. Family 0 has no rows at all; for these shapes family 8 chooses as 7 does.
    """
    require(tree, pair)
    report = run_cases(emulator, pair, "check", "reverse", family)
    assert_clean(report)
    varies = report.dispatches.keys() != run_cases(emulator, pair, "check", "reverse").dispatches.keys()
    assert varies == (pair == "q4_0/q4_0" and family == "0")


def suppressions() -> dict[str, list[tuple[str, str]]]:
    """The entries of suppressions.txt by id: keys with values, some keys more than once."""
    text = (METAL / "suppressions.txt").read_text(encoding="utf-8")
    stanzas = [stanza.strip().splitlines() for stanza in text.split("\n\n") if "id: " in stanza]
    fields = [[(key, value) for key, _, value in (line.partition(": ") for line in lines)] for lines in stanzas]
    return {dict(entry)["id"]: entry for entry in fields}


def test_every_suppression_is_still_needed(emulator: Emulator) -> None:
    reports = [run_cases(emulator, pair, "check", "reverse") for pair in STOCK]
    # columns beyond DV are touched only at head sizes that the stock cases above do not have
    reports += [emulator.direct("--pair", "f16/f16", "--heads", "32", "--heads", "96", "--suite", "sizes")]
    known = {name for report in reports for name in report.known()}
    assert suppressions().keys() == known, "remove what no longer happens from metal/suppressions.txt"


def test_every_conflict_of_a_suppression_is_still_needed(emulator: Emulator, tree: Tree) -> None:
    require(tree, "tq3_0/tq3_0")
    reports = [run_cases(emulator, pair, "check", "reverse") for pair in STOCK + OWN]
    reports += [run_sizes(emulator, pair) for pair in OWN]
    conflicts = {place["text"] for report in reports for f in report.findings("known") for place in f["against"]}
    listed = {value for entry in suppressions().values() for key, value in entry if key == "against"}
    assert listed == conflicts, "remove what no longer happens from metal/suppressions.txt"


def test_every_suppression_has_a_reason_and_is_written_up() -> None:
    findings = (METAL / "UPSTREAM_FINDINGS.md").read_text(encoding="utf-8")
    for name, entry in suppressions().items():
        keys = {key for key, _ in entry}
        assert keys - {"against"} == {"id", "kind", "file", "text", "kernel", "reason"}
        assert ("against" in keys) == dict(entry)["kind"].endswith("-race")
        assert name in findings


def elements(tree: Tree, kernel: str) -> int:
    """NE of a vec kernel: the third of the last numbers of its instantiation (DK, DV, NE and sometimes Q)."""
    for source in tree.metal.glob("kernels/fa_*.metal"):
        if found := re.search(
            rf'"{kernel}"\s*\).*?, +\d+, +\d+, +(\d)(?:, +\d)?>;', source.read_text(encoding="utf-8")
        ):
            return int(found[1])
    raise AssertionError(f"{kernel} is not instantiated")


@pytest.mark.parametrize("pair", ["q4_0/q4_0", *OWN])
def test_every_variant_of_the_vec_kernel_is_reached(emulator: Emulator, tree: Tree, pair: str) -> None:
    """NE 1, 2 and 4 (tq3_0: 4); Q 1, 2 and 4 where there are such kernels; 1 and 4 SIMD groups; split work; padding."""
    require(tree, pair)
    key, value = pair.split("/")
    if value == "tq3_0":
        shapes = ["--heads", "32", "--heads", "64", "--heads", "128"]
    else:
        shapes = ["--heads", "128", *(a for q in (1, 2, 4) for ne in (1, 2, 4) for a in ("--force", f"{q}/{ne}"))]
    report = emulator.direct("--pair", pair, *shapes, "--suite", "vec", log="1")
    assert_clean(report)
    stem = "kernel_flash_attn_ext_vec_" + (key if key == value else f"{key}_{value}")
    vec = {n for n in report.dispatches if re.match(rf"{stem}_dk\d", n)}
    assert {elements(tree, n) for n in vec} == ({4} if value == "tq3_0" else {1, 2, 4}), sorted(vec)
    if value != "tq3_0":
        assert {int(q) for n in vec for q in re.findall(r"_q(\d)_", n)} >= {1, 2, 4}, sorted(vec)
    assert {"kernel_flash_attn_ext_pad", "kernel_flash_attn_ext_vec_reduce"} <= report.dispatches.keys()
    groups = {(int(x), int(y)) for x, y in re.findall(rf"{stem}_dk\S+ .*group +(\d+) +(\d+)", report.output)}
    assert {(32, 1), (32, 4)} <= groups, f"threadgroups of one and of four SIMD groups: {sorted(groups)}"


@pytest.mark.parametrize("pair", ["q4_0/q4_0", *OWN])
def test_the_matrix_kernel_is_reached(emulator: Emulator, tree: Tree, pair: str) -> None:
    """Below 32 queries the type's own kernel, above it f16 copies; mixed pairs always go through the copies."""
    require(tree, pair)
    key, value = pair.split("/")
    report = emulator.direct("--pair", pair, "--heads", "128", "--suite", "matrix", variant="fast")
    assert_clean(report)
    own = {f"kernel_flash_attn_ext_{key}_dk128_dv128"} if key == value else set()
    copies = {f"kernel_flash_attn_ext_kv_{t}_f16" for t in {key, value} - {"f16"}}
    expected = {"kernel_flash_attn_ext_blk", "kernel_flash_attn_ext_pad", "kernel_flash_attn_ext_f16_dk128_dv128"}
    assert own | copies | expected <= report.dispatches.keys()


HEADS = ["32", "96", "96/64", "192", "192/128", "256", "320/256", "512", "576/512"]


def sizes(pair: str) -> list[str]:
    """Return the head sizes of a pair: MLA needs equal types."""
    key, value = pair.split("/")
    return [h for h in HEADS if key == value or h not in ("320/256", "576/512")]


@functools.cache
def run_sizes(emulator: Emulator, pair: str) -> Report:
    heads = [a for h in sizes(pair) for a in ("--heads", h)]
    return emulator.direct("--pair", pair, *heads, "--suite", "sizes")


@pytest.mark.parametrize("pair", OWN)
def test_all_head_sizes(emulator: Emulator, tree: Tree, pair: str) -> None:
    require(tree, pair)
    report = run_sizes(emulator, pair)
    assert_clean(report)
    key, value = pair.split("/")
    stem = "kernel_flash_attn_ext_vec_" + (key if key == value else f"{key}_{value}")
    for dk, _, dv in (h.partition("/") for h in sizes(pair)):
        name = rf"{stem}_dk{dk}_dv{dv or dk}{VARIANT}"
        assert any(re.fullmatch(name, kernel) for kernel in report.dispatches), name


def test_every_kernel_of_the_type_is_dispatched(emulator: Emulator, tree: Tree) -> None:
    """What was never executed was never checked: variants for long caches and rare copies as well."""
    require(tree, "tq3_0/tq3_0")
    sources = "".join(p.read_text(encoding="utf-8") for p in (tree.metal / "kernels").iterdir())
    kernels = set(re.findall(r'host_name\(\s*"(\w*tq3_0\w*)"\s*\)', sources))
    ran = {
        n
        for pair in OWN + FURTHER
        for r in (run_cases(emulator, pair, "check", "reverse"), run_sizes(emulator, pair))
        for n in r.dispatches
    }
    assert kernels
    assert kernels - ran == set(), "kernels that no case of the checking build dispatches"


BACKEND_OPS = [
    ("SET_ROWS", "type_dst={t}|type={t}"),
    ("GET_ROWS", "type={t},n=256,m=5,r=4,be1=(1|7),"),
    ("CPY", "type_(src|dst)={t}"),
]


@pytest.mark.parametrize("name", ["q4_0", "q8_0", "tq3_0"])
@pytest.mark.parametrize(("op", "pattern"), BACKEND_OPS)
def test_upstreams_cases_for_rows(
    emulator: Emulator, tree: Tree, program: Callable[[str], Path], op: str, pattern: str, name: str
) -> None:
    require(tree, f"{name}/{name}")
    run_backend_ops(emulator, program, op, pattern.format(t=name))


@pytest.mark.parametrize(
    ("keys", "values"), [("q4_0", "q4_0"), ("tq3_0", "tq3_0"), ("q8_0", "tq3_0"), ("f16", "tq3_0")]
)
def test_upstreams_cases_for_attention(
    emulator: Emulator, tree: Tree, program: Callable[[str], Path], keys: str, values: str
) -> None:
    require(tree, f"{keys}/{values}")
    shapes = r"hsk=64,hsv=64,.*nr23=\[[124],[13]\],kv=(96|113|131|200),nb=(1|3|7|20|24|32),"
    run_backend_ops(
        emulator, program, "FLASH_ATTN_EXT", f"{shapes}.*type_K={keys},type_V={values},permute=\\[0,1,2,3\\]"
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", ["0", "7", "8"])
@pytest.mark.parametrize("pair", ["q4_0/q4_0", *OWN])
def test_all_of_upstreams_cases_for_attention(
    emulator: Emulator, tree: Tree, program: Callable[[str], Path], pair: str, family: str
) -> None:
    """Two head sizes, as the fast variant has them; every other one is in `tqforge verify --full --stage ops`."""
    require(tree, pair)
    keys, values = pair.split("/")
    pattern = f"hsk=(64|128),hsv=(64|128),.*type_K={keys},type_V={values},"
    passed = run_backend_ops(emulator, program, "FLASH_ATTN_EXT", pattern, family)
    print(f"{pair}, GPU family {family}: {passed} passed")  # noqa: T201 - with -s


def run_backend_ops(
    emulator: Emulator, program: Callable[[str], Path], op: str, pattern: str, family: str = "7"
) -> int:
    report = emulator.run(
        [program("test-backend-ops"), "test", "-b", "MTL0", "-o", op, "-p", pattern],
        "fast",
        expect_dispatches="1",
        family=family,
        env={"LLAMA_TEST_FA_VEC_DISABLE": "1"},
    )
    assert_clean(report)
    passed = re.search(r"(\d+)/(\d+) tests passed", report.output)
    assert passed is not None
    assert int(passed[1]) == int(passed[2]) > 0, report.describe()
    return int(passed[1])
