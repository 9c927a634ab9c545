"""Make a llama-cpp-python wheel of the library files that passed the load check."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tqforge import resources
from tqforge.adapters import fs, index, proc
from tqforge.build import smoke_test
from tqforge.build.builder import Built, ModelSource
from tqforge.build.stamp import LoadCheck
from tqforge.core.reporter import Reporter
from tqforge.core.values import Base
from tqforge.errors import BuildError, ConfigError
from tqforge.workspace import Workspace

#: The libraries of the Python package, without those that only the programs need.
_LIBRARIES = ("llama", "mtmd", "ggml", "ggml-base", "ggml-cpu", "ggml-metal", "ggml-blas")
_SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
_VERSION = re.compile(r'^__version__ = "[^"]*"$', re.MULTILINE)
#: The imports of the bindings of every pinned release.
REQUIRES = ("typing-extensions>=4.5.0", "numpy>=1.20.0", "diskcache>=5.6.1", "jinja2>=2.11.3")


@dataclass(frozen=True, kw_only=True)
class BuiltWheel:
    """A finished wheel, and the load check of the libraries in it."""

    path: Path
    version: str
    load: LoadCheck


def version(release: str, tree: str) -> str:
    """Return `0.3.36+tq.1a2b3c4d`: release and tree, with more digits when the first eight are all decimal."""
    short = next((tree[:length] for length in range(8, 41) if not tree[:length].isdigit()), tree)
    return f"{release}+tq.{short}"


def project_file(name: str) -> str:
    """Return the pyproject.toml of the wheel, which compiles nothing."""
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


def make(
    workspace: Workspace, reporter: Reporter, base: Base, built: Built, *, out: Path, model: ModelSource
) -> BuiltWheel:
    """Build the wheel into `out` and decode with it. The caller holds the workspace lock."""
    reporter.step("Packing the libraries with their bindings, and loading them out of the wheel")
    name = version(base.archive.version, built.stamp.tree)
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=workspace.root) as folder:
        stage = Path(folder) / "stage"
        _stage(workspace.bindings(base.name) / "llama_cpp", built, stage, name)
        wheel = _pack(stage, Path(folder) / "dist")
        load = _load(reporter, built, wheel, Path(folder) / "unpacked", model)
        with fs.disk_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            target = out / wheel.name
            with fs.atomic_path(target) as temporary:
                shutil.copyfile(wheel, temporary)
            target.chmod(0o644)
    return BuiltWheel(path=target, version=name, load=load)


def _stage(bindings: Path, built: Built, stage: Path, name: str) -> None:
    package, library = stage / "llama_cpp", stage / "llama_cpp" / "lib"
    shutil.copytree(bindings, package, ignore=shutil.ignore_patterns("__pycache__", "lib"))
    library.mkdir()
    for part in _LIBRARIES:
        path = built.bin / f"lib{part}{_SUFFIX}"
        if path.exists():
            shutil.copy2(path, library)
    init = package / "__init__.py"
    text, count = _VERSION.subn(f'__version__ = "{name}"', init.read_text(encoding="utf-8"))
    if count != 1:
        raise ConfigError("The bindings do not state their version as expected.", where=str(init))
    init.write_text(text, encoding="utf-8")
    shutil.copytree(resources.third_party() / "licenses", stage / "licenses")
    (stage / "pyproject.toml").write_text(project_file(name), encoding="utf-8")
    origin = built.stamp.model_dump(
        mode="json", include={"base", "commit", "tree", "series_sha256", "arguments", "version"}
    )
    (package / "tqforge.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")


def _pip(*words: str | Path, env: Mapping[str, str | None] | None = None) -> None:
    try:
        proc.run(index.pip(*words, "--quiet", "--no-deps", "--no-index"), env=env)
    except proc.ProcessError as error:
        raise BuildError(
            f"pip could not make or unpack the wheel: {error.done.tail(5)}", where=str(words[-1])
        ) from error


def _pack(stage: Path, dist: Path) -> Path:
    cleared: dict[str, str | None] = dict.fromkeys(("CMAKE_ARGS", "SKBUILD_WHEEL_CMAKE", "ARCHFLAGS"))
    _pip("wheel", "--no-build-isolation", "--wheel-dir", dist, stage, env=cleared)
    return next(dist.glob("*.whl"))


def _load(reporter: Reporter, built: Built, wheel: Path, target: Path, model: ModelSource) -> LoadCheck:
    """Install the wheel apart from the build folder and decode with what was installed."""
    _pip("install", "--no-compile", "--target", target, wheel)
    request = smoke_test.Request(
        library=target / "llama_cpp" / "lib",
        bindings=target,
        log=built.folder / "wheel.log",
        metal=built.stamp.metal,
        threads=2,
    )
    return smoke_test.run(request, model, reporter)
