"""A llama-cpp-python wheel around the very library files that passed the load check."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tqforge import resources
from tqforge.adapters import fs, proc
from tqforge.build import smoke_test
from tqforge.build.builder import Built, ModelSource
from tqforge.build.stamp import LoadCheck
from tqforge.context import Context
from tqforge.core.values import Base
from tqforge.errors import BuildError, ConfigError

#: The libraries of the Python package; what the programs need beside them stays out.
_LIBRARIES = ("llama", "mtmd", "ggml", "ggml-base", "ggml-cpu", "ggml-metal", "ggml-blas")
_SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
_VERSION = re.compile(r'^__version__ = "[^"]*"$', re.MULTILINE)
#: What the bindings of every pinned release import.
REQUIRES = ("typing-extensions>=4.5.0", "numpy>=1.20.0", "diskcache>=5.6.1", "jinja2>=2.11.3")


@dataclass(frozen=True, kw_only=True)
class Made:
    """A finished wheel, and what its own library showed when it was loaded out of it."""

    path: Path
    version: str
    load: LoadCheck


def version(release: str, tree: str) -> str:
    """`0.3.36+tq.1a2b3c4d`: the bindings' release and the tree (longer if eight digits would read as a number)."""
    short = next((tree[:length] for length in range(8, 41) if not tree[:length].isdigit()), tree)
    return f"{release}+tq.{short}"


def project_file(name: str) -> str:
    """The pyproject.toml of the wheel: the metadata of the bindings, nothing to compile."""
    lines = [
        '[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n',
        "[project]",
        'name = "llama_cpp_python"',
        f"version = {json.dumps(name)}",
        'description = "Python bindings for llama.cpp, with the tq3_0 cache type (by tqforge)"',
        'requires-python = ">=3.8"',
        f"dependencies = {json.dumps(REQUIRES)}",
        'license = { text = "MIT" }\n',
        '[tool.scikit-build]\nminimum-version = "0.10"',
        'wheel.cmake = false\nwheel.platlib = true\nwheel.py-api = "py3"\nwheel.packages = ["llama_cpp"]',
        'wheel.license-files = ["licenses/*"]',
    ]
    return "\n".join(lines) + "\n"


def make(ctx: Context, base: Base, built: Built, out: Path, model: ModelSource) -> Made:
    """Build the wheel into `out` and decode with it. The caller holds the workspace lock."""
    named = version(base.archive.version, built.stamp.tree)
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=ctx.workspace.root) as folder:
        stage = Path(folder) / "stage"
        _stage(ctx, base, built, stage, named)
        wheel = _pack(stage, Path(folder) / "dist")
        load = _load(ctx, built, wheel, Path(folder) / "unpacked", model)
        with fs.disk_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            target = out / wheel.name
            with fs.atomic_path(target) as temporary:
                shutil.copyfile(wheel, temporary)
            target.chmod(0o644)
    return Made(path=target, version=named, load=load)


def _stage(ctx: Context, base: Base, built: Built, stage: Path, named: str) -> None:
    package, library = stage / "llama_cpp", stage / "llama_cpp" / "lib"
    shutil.copytree(
        ctx.workspace.bindings(base.name) / "llama_cpp", package, ignore=shutil.ignore_patterns("__pycache__", "lib")
    )
    library.mkdir()
    for name in _LIBRARIES:
        path = built.bin / f"lib{name}{_SUFFIX}"
        if path.exists():
            shutil.copy2(path, library)
    init = package / "__init__.py"
    text, count = _VERSION.subn(f'__version__ = "{named}"', init.read_text(encoding="utf-8"))
    if count != 1:
        raise ConfigError("The bindings do not name their version as expected.", where=str(init))
    init.write_text(text, encoding="utf-8")
    _write_metadata(built, stage, named)


def _write_metadata(built: Built, stage: Path, named: str) -> None:
    shutil.copytree(resources.third_party() / "licenses", stage / "licenses")
    (stage / "pyproject.toml").write_text(project_file(named), encoding="utf-8")
    keys = built.stamp.model_dump(
        mode="json", include={"base", "commit", "tree", "series_sha256", "arguments", "version"}
    )
    (stage / "llama_cpp" / "tqforge.json").write_text(json.dumps(keys, indent=2) + "\n", encoding="utf-8")


def _pack(stage: Path, dist: Path) -> Path:
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    cleared: dict[str, str | None] = dict.fromkeys(("CMAKE_ARGS", "SKBUILD_WHEEL_CMAKE", "ARCHFLAGS"))
    try:
        proc.run([*words, "--no-build-isolation", "--wheel-dir", dist, stage], env=cleared)
    except proc.ProcessError as error:
        raise BuildError(f"The wheel was not made: {error.done.tail(5)}", where=str(stage)) from error
    return next(dist.glob("*.whl"))


def _load(ctx: Context, built: Built, wheel: Path, target: Path, model: ModelSource) -> LoadCheck:
    """Unpack it as pip would and decode with what came out, apart from the build folder."""
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
    ]
    proc.run([*words, "--no-compile", "--target", target, wheel])
    request = smoke_test.Request(
        library=target / "llama_cpp" / "lib",
        bindings=target,
        log=built.folder / "wheel.log",
        metal=built.stamp.metal,
        threads=2,
    )
    return smoke_test.run(request, model, ctx.out)
