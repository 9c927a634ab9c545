from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tqforge.build import cmake_plan
from tqforge.build.cmake_plan import Options, Version
from tqforge.core.values import Host
from tqforge.errors import PlatformError

V3 = frozenset({"sse4_2", "avx", "avx2", "fma", "f16c", "bmi2"})
LINUX = Host(
    system="Linux",
    release="6.1",
    machine="x86_64",
    python="x86_64",
    cpu="AMD EPYC",
    features=V3 | {"avx512f", "avx512vl"},
    cores=2,
    memory=16 << 30,
)
LINUX_ARM = replace(LINUX, machine="arm64", python="arm64", cpu="Neoverse", features=frozenset())
MAC = Host(system="Darwin", release="15.2", machine="arm64", python="arm64", cpu="Apple M2", cores=8, memory=16 << 30)
MAC_INTEL = replace(MAC, machine="x86_64", python="x86_64", cpu="Intel Core i7", features=V3)
ROSETTA = replace(MAC, python="x86_64")
VERSION = Version(tree="0123456789abcdef0123456789abcdef01234567", build=11312)

COMMON = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "ON",
    "CMAKE_BUILD_RPATH_USE_ORIGIN": "ON",
    "CMAKE_PLATFORM_NO_VERSIONED_SONAME": "ON",
    "LLAMA_BUILD_COMMON": "ON",
    "LLAMA_BUILD_TOOLS": "ON",
    "LLAMA_BUILD_TESTS": "ON",
    "LLAMA_BUILD_SERVER": "ON",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_CURL": "OFF",
    "GGML_CCACHE": "OFF",
    "LLAMA_BUILD_NUMBER": "11312",
    "LLAMA_BUILD_COMMIT": "tqforge-0123456789ab",
}
PORTABLE_X86 = {
    "GGML_NATIVE": "OFF",
    **{f"GGML_{name}": "ON" for name in ("SSE42", "AVX", "AVX2", "FMA", "F16C", "BMI2")},
    **{f"GGML_{name}": "OFF" for name in ("AVX_VNNI", "AVX512", "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16")},
    **{f"GGML_{name}": "OFF" for name in ("AMX_TILE", "AMX_INT8", "AMX_BF16")},
}
MAC_METAL = {
    "GGML_METAL": "ON",
    "GGML_METAL_EMBED_LIBRARY": "ON",
    "CMAKE_OSX_ARCHITECTURES": "arm64",
    "CMAKE_OSX_DEPLOYMENT_TARGET": "13.3",
}


def _given(host: Host, **options: object) -> tuple[str, dict[str, str]]:
    plan = cmake_plan.make(host, Options(**options), VERSION)  # type: ignore[arg-type]
    words = [word.removeprefix("-D").partition("=") for word in plan.arguments]
    assert all(word.startswith("-D") for word in plan.arguments)
    assert len({name for name, _, _ in words}) == len(words)
    return plan.preset, {name: value for name, _, value in words}


@pytest.mark.parametrize(
    ("host", "options", "preset", "own"),
    [
        (LINUX, {}, "linux-x86_64-cpu", {"GGML_NATIVE": "ON", "GGML_METAL": "OFF"}),
        (LINUX, {"native": False}, "linux-x86_64-cpu", {**PORTABLE_X86, "GGML_METAL": "OFF"}),
        (
            replace(LINUX, features=frozenset({"sse4_2", "avx"})),
            {"native": False},
            "linux-x86_64-cpu",
            {
                **PORTABLE_X86,
                **{f"GGML_{name}": "OFF" for name in ("AVX2", "FMA", "F16C", "BMI2")},
                "GGML_METAL": "OFF",
            },
        ),
        (LINUX_ARM, {}, "linux-arm64-cpu", {"GGML_NATIVE": "ON", "GGML_CPU_ARM_ARCH": "", "GGML_METAL": "OFF"}),
        (
            LINUX_ARM,
            {"native": False},
            "linux-arm64-cpu",
            {"GGML_NATIVE": "OFF", "GGML_CPU_ARM_ARCH": "armv8-a", "GGML_METAL": "OFF"},
        ),
        (MAC, {}, "macos-arm64-metal", {"GGML_NATIVE": "ON", "GGML_CPU_ARM_ARCH": "", **MAC_METAL}),
        (MAC, {"metal": True}, "macos-arm64-metal", {"GGML_NATIVE": "ON", "GGML_CPU_ARM_ARCH": "", **MAC_METAL}),
        (
            MAC,
            {"metal": False},
            "macos-arm64-cpu",
            {
                "GGML_NATIVE": "ON",
                "GGML_CPU_ARM_ARCH": "",
                "GGML_METAL": "OFF",
                "CMAKE_OSX_ARCHITECTURES": "arm64",
                "CMAKE_OSX_DEPLOYMENT_TARGET": "13.3",
            },
        ),
        (
            replace(MAC_INTEL, release="12.7.4"),
            {},
            "macos-x86_64-cpu",
            {
                "GGML_NATIVE": "ON",
                "GGML_METAL": "OFF",
                "CMAKE_OSX_ARCHITECTURES": "x86_64",
                "CMAKE_OSX_DEPLOYMENT_TARGET": "12.7",
            },
        ),
        (
            MAC_INTEL,
            {"metal": True},
            "macos-x86_64-metal",
            {"GGML_NATIVE": "ON", **MAC_METAL, "CMAKE_OSX_ARCHITECTURES": "x86_64"},
        ),
    ],
)
def test_arguments(host: Host, options: dict[str, bool], preset: str, own: dict[str, str]) -> None:
    assert _given(host, **options) == (preset, {**COMMON, **own})


@pytest.mark.parametrize("host", [LINUX, LINUX_ARM])
def test_metal_elsewhere_is_refused_in_one_sentence_that_names_the_alternative(host: Host) -> None:
    with pytest.raises(PlatformError) as caught:
        cmake_plan.make(host, Options(metal=True), VERSION)
    assert caught.value.what.count(". ") == 0
    assert "verify --stage ops" in caught.value.what


@pytest.mark.parametrize("metal", [None, True, False])
def test_rosetta_is_refused_with_the_way_out(metal: bool | None) -> None:
    with pytest.raises(PlatformError, match="Rosetta") as caught:
        cmake_plan.make(ROSETTA, Options(metal=metal), VERSION)
    assert "arm64 Python" in caught.value.remedy
    assert "arm64" in caught.value.where


def test_a_python_of_another_architecture_is_refused() -> None:
    with pytest.raises(PlatformError, match="could not load"):
        cmake_plan.make(replace(LINUX, python="x86"), Options(), VERSION)


def test_an_unknown_system_is_refused() -> None:
    with pytest.raises(PlatformError, match="Linux and macOS"):
        cmake_plan.make(replace(LINUX, system="Windows"), Options(), VERSION)


@pytest.mark.parametrize("ccache", [Path("/usr/bin/ccache"), None])
def test_ccache_is_used_when_there_and_does_not_decide_about_reuse(ccache: Path | None) -> None:
    plan = cmake_plan.make(LINUX, Options(ccache=ccache), VERSION)
    assert plan.launchers[:2] == tuple(f"-DCMAKE_{name}_COMPILER_LAUNCHER={ccache or ''}" for name in ("C", "CXX"))
    assert plan.arguments == cmake_plan.make(LINUX, Options(), VERSION).arguments


def test_the_version_names_the_tree() -> None:
    assert cmake_plan.make(LINUX, Options(), VERSION).version == "b11312-tqforge-0123456789ab"


@pytest.mark.parametrize(
    ("cores", "memory", "asked", "expected"),
    [(2, 16 << 30, None, 2), (8, 4 << 30, None, 2), (8, 1 << 30, None, 1), (8, 0, None, 8), (8, 4 << 30, 6, 6)],
)
def test_jobs_follow_cores_and_memory(cores: int, memory: int, asked: int | None, expected: int) -> None:
    plan = cmake_plan.make(replace(LINUX, cores=cores, memory=memory), Options(jobs=asked), VERSION)
    assert plan.jobs == expected


def test_the_users_flags_stay_out() -> None:
    environment = dict(cmake_plan.environment())
    assert environment["NINJA_STATUS"] == "[%f/%t] "
    assert [environment[name] for name in ("CFLAGS", "CMAKE_ARGS", "MACOSX_DEPLOYMENT_TARGET")] == [None] * 3
