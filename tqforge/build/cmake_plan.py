"""Compute the arguments of CMake for a machine and the user's options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tqforge import resources
from tqforge.core.values import Host
from tqforge.errors import PlatformError

#: The targets of a build. Others (test programs, llama-quantize, ...) are built when they are needed.
TARGETS = ("llama", "llama-server", "llama-cli", "llama-completion", "llama-bench", "llama-perplexity")

#: Instruction sets of x86-64-v3: GGML option, name in the kernel's list.
_X86_PORTABLE = (
    ("SSE42", "sse4_2"),
    ("AVX", "avx"),
    ("AVX2", "avx2"),
    ("FMA", "fma"),
    ("F16C", "f16c"),
    ("BMI2", "bmi2"),
)
_X86_WIDER = ("AVX_VNNI", "AVX512", "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16", "AMX_TILE", "AMX_INT8", "AMX_BF16")
_ARM_PORTABLE = {"Darwin": "armv8.2-a+dotprod+fp16", "Linux": "armv8-a"}
_OLDEST_MACOS = (13, 3)  # the oldest macOS that upstream's own releases run on
_MEMORY_PER_JOB = 3 << 29  # the largest translation units take up to 1.5 GiB

_NO_METAL = "There is no Metal on this machine"
_METAL_ELSEWHERE = "`tqforge verify --stage ops` executes the patched Metal kernels on the CPU instead."
_ROSETTA = (
    "This Python is an x86-64 program under Rosetta: the library it could load would be slow and could not use Metal."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The user's choices. None means the default of the machine."""

    metal: bool | None = None
    native: bool | None = None
    jobs: int | None = None
    ccache: Path | None = None
    targets: tuple[str, ...] = TARGETS


@dataclass(frozen=True, kw_only=True)
class Version:
    """The version that the programs report."""

    tree: str
    build: int = 0

    @property
    def commit(self) -> str:
        """Shown in place of a commit id, so that a patched build is not taken for a stock one."""
        return f"tqforge-{self.tree[:12]}"

    def __str__(self) -> str:
        return f"b{self.build}-{self.commit}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to build a checkout."""

    preset: str
    metal: bool
    native: bool
    arguments: tuple[str, ...]  # for CMake; they decide about reuse
    launchers: tuple[str, ...]  # for CMake as well, but neither ccache nor the native tests change a build
    targets: tuple[str, ...]
    jobs: int
    version: str

    @property
    def instructions(self) -> str:
        return "this CPU's own instructions" if self.native else "portable instructions"


def make(host: Host, options: Options, version: Version) -> Plan:
    """Make the plan for a machine. Raises PlatformError for what it cannot do."""
    refuse_impossible(host, options)
    metal = wants_metal(host, options.metal)
    native = options.native is not False
    return Plan(
        preset=preset(host, metal=metal),
        metal=metal,
        native=native,
        arguments=(
            "-DCMAKE_BUILD_TYPE=Release",
            *_targets_switches(),
            *_instructions(host, native=native),
            *_graphics(host, metal=metal),
            f"-DLLAMA_BUILD_NUMBER={version.build}",
            f"-DLLAMA_BUILD_COMMIT={version.commit}",
        ),
        launchers=(*_launchers(options.ccache), native_tests()),
        targets=options.targets,
        jobs=options.jobs or jobs(host),
        version=str(version),
    )


def wants_metal(host: Host, asked: bool | None) -> bool:
    """Return whether to build with Metal: as asked for, else on Apple silicon."""
    return asked if asked is not None else host.system == "Darwin" and host.machine == "arm64"


def preset(host: Host, *, metal: bool) -> str:
    """Return the name of a build, such as `linux-x86_64-cpu` or `macos-arm64-metal`."""
    system = {"Darwin": "macos"}.get(host.system, host.system.lower())
    return f"{system}-{host.machine}-{'metal' if metal else 'cpu'}"


def refuse_impossible(host: Host, options: Options) -> None:
    """Raise PlatformError if this machine cannot build with these options."""
    if options.metal and host.system != "Darwin":
        raise PlatformError(f"{_NO_METAL}; {_METAL_ELSEWHERE}")
    if host.system not in ("Darwin", "Linux"):
        raise PlatformError(f"tqforge builds on Linux and macOS, not on {host.system}.")
    if host.translated:
        raise PlatformError(
            _ROSETTA,
            where=f"hardware {host.machine}, Python {host.python}",
            remedy="Install tqforge with an arm64 Python (python.org and Homebrew have one) and build again.",
        )
    if host.machine != host.python:
        raise PlatformError(
            f"This Python is a {host.python} program on a {host.machine} machine; "
            "it could not load the library that would be built.",
            remedy=f"Install tqforge with a {host.machine} Python.",
        )


def _targets_switches() -> tuple[str, ...]:
    """Return the switches of llama.cpp's parts. None needs the network or a system library.

    Each library is one file that finds the others beside it, so that the tested files can go into a wheel.
    """
    on = ("BUILD_SHARED_LIBS", "CMAKE_BUILD_RPATH_USE_ORIGIN", "CMAKE_PLATFORM_NO_VERSIONED_SONAME")
    parts = ("LLAMA_BUILD_COMMON", "LLAMA_BUILD_TOOLS", "LLAMA_BUILD_TESTS", "LLAMA_BUILD_SERVER")
    off = ("LLAMA_BUILD_EXAMPLES", "LLAMA_BUILD_APP", "LLAMA_BUILD_UI", "LLAMA_USE_PREBUILT_UI", "LLAMA_OPENSSL")
    return (
        *(f"-D{name}=ON" for name in (*on, *parts)),
        *(f"-D{name}=OFF" for name in (*off, "LLAMA_CURL", "GGML_CCACHE")),
    )


def _instructions(host: Host, *, native: bool) -> tuple[str, ...]:
    first = f"-DGGML_NATIVE={'ON' if native else 'OFF'}"
    if host.machine == "arm64":
        return (first, f"-DGGML_CPU_ARM_ARCH={'' if native else _ARM_PORTABLE[host.system]}")
    if host.machine != "x86_64" or native:
        return (first,)
    known = {option: _switch(feature in host.features) for option, feature in _X86_PORTABLE}
    narrow = tuple(f"-DGGML_{option}={value}" for option, value in known.items())
    return (first, *narrow, *(f"-DGGML_{option}=OFF" for option in _X86_WIDER))


def _switch(on: bool) -> str:
    return "ON" if on else "OFF"


def _graphics(host: Host, *, metal: bool) -> tuple[str, ...]:
    if host.system != "Darwin":
        return ("-DGGML_METAL=OFF",)
    embed = ("-DGGML_METAL_EMBED_LIBRARY=ON",) if metal else ()
    return (
        f"-DGGML_METAL={_switch(metal)}",
        *embed,
        f"-DCMAKE_OSX_ARCHITECTURES={host.machine}",
        f"-DCMAKE_OSX_DEPLOYMENT_TARGET={_deployment_target(host.release)}",
    )


def _deployment_target(release: str) -> str:
    parts = [int(part) for part in release.split(".")[:2] if part.isdigit()]
    mine = (parts[0], parts[1] if len(parts) > 1 else 0) if parts else _OLDEST_MACOS
    return ".".join(str(part) for part in min(mine, _OLDEST_MACOS))


def native_tests() -> str:
    """Return the CMake argument that adds the native tests of this tqforge to a build."""
    return f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={resources.native_tests() / 'inject.cmake'}"


def _launchers(ccache: Path | None) -> tuple[str, ...]:
    return tuple(f"-DCMAKE_{language}_COMPILER_LAUNCHER={ccache or ''}" for language in ("C", "CXX"))


def environment() -> tuple[tuple[str, str | None], ...]:
    """Return the changes to the environment that make builds independent of the user's shell."""
    cleared = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CMAKE_ARGS", "CMAKE_GENERATOR", "CMAKE_TOOLCHAIN_FILE")
    macos = ("MACOSX_DEPLOYMENT_TARGET", "ARCHFLAGS", "SOURCE_DATE_EPOCH", "CLICOLOR_FORCE", "NINJAFLAGS", "GIT_DIR")
    return (
        ("NINJA_STATUS", "[%f/%t] "),
        ("LC_ALL", "C"),
        ("CMAKE_COLOR_DIAGNOSTICS", "OFF"),
        *((name, None) for name in (*cleared, *macos)),
    )


def jobs(host: Host) -> int:
    """Return the number of parallel compile jobs: one per core, within the memory."""
    by_memory = host.memory // _MEMORY_PER_JOB if host.memory else host.cores
    return max(1, min(host.cores, by_memory))
