"""The inputs of a build, kept beside it. They decide whether a build can be reused, and why not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from tqforge.adapters import fs
from tqforge.build.cmake_plan import Plan
from tqforge.core.values import Checkout, Tools

STAMP = "stamp.json"
BEGUN = "begun.json"
_SHOWN = 3  # changed options that are named


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Artefact(_Record):
    """A file of the build, as it was when the build finished."""

    path: str  # relative to the build folder
    size: int
    mtime_ns: int


def _current_word(status: object) -> object:
    """Read the stamps of versions that wrote `deferred`."""
    return "skipped" if status == "deferred" else status


class LoadCheck(_Record):
    """The result of the smoke test. `skipped` means that it could not run, with the reason."""

    status: Annotated[Literal["passed", "skipped"], BeforeValidator(_current_word)]
    reason: str = ""
    types: tuple[str, ...] = ()
    symbols: int = 0
    fields: int = 0
    system: str = ""
    pair: str = ""
    tokens: int = 0
    model: str = ""
    seconds: float = 0.0


class Stamp(_Record):
    """The inputs and the results of a build."""

    schema_version: Literal[1] = 1
    base: str
    commit: str
    tree: str
    series_sha256: str
    checkout: str
    preset: str
    metal: bool
    native: bool
    arguments: tuple[str, ...]
    targets: tuple[str, ...]
    compilers: dict[str, str]
    tools: dict[str, str]
    version: str
    artefacts: tuple[Artefact, ...] = ()
    load: LoadCheck | None = None
    seconds: float = 0.0

    @property
    def id(self) -> str:
        """A short hash of the inputs."""
        inputs = (self.base, self.commit, self.tree, self.series_sha256, self.arguments, sorted(self.compilers.items()))
        return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]


def wanted(prepared: Checkout, plan: Plan, tools: Tools) -> Stamp:
    """Return the stamp of a build of this checkout by this plan."""
    return Stamp(
        base=prepared.base.name,
        commit=prepared.base.commit,
        tree=prepared.tree,
        series_sha256=prepared.series_sha256,
        checkout=str(prepared.path),
        preset=plan.preset,
        metal=plan.metal,
        native=plan.native,
        arguments=plan.arguments,
        targets=plan.targets,
        compilers={"C": f"{tools.cc.path} {tools.cc.version}", "C++": f"{tools.cxx.path} {tools.cxx.version}"},
        tools={tool.name: f"{tool.path} {tool.version}" for tool in (tools.cmake, tools.ninja)},
        version=plan.version,
    )


def read(folder: Path, name: str = STAMP) -> Stamp | None:
    """Read the stamp of a folder; None if there is none, or one of another version."""
    try:
        return Stamp.model_validate_json((folder / name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None


def write(folder: Path, stamp: Stamp, name: str = STAMP) -> None:
    """Write the stamp of a folder."""
    fs.write_text(folder / name, stamp.model_dump_json(indent=2) + "\n")


def describe(folder: Path, paths: list[Path]) -> tuple[Artefact, ...]:
    """Describe the files of a finished build."""
    found = []
    for path in sorted(paths):
        state = path.stat()
        found.append(
            Artefact(path=str(path.relative_to(folder)), size=state.st_size, mtime_ns=state.st_mtime_ns),
        )
    return tuple(found)


def reasons(old: Stamp | None, new: Stamp, folder: Path, *, begun: bool) -> tuple[str, ...]:
    """Return why `folder` must be built; empty if its build can be reused."""
    if old is None:
        return ("the last build was interrupted",) if begun else ("first build",)
    return (*differences(old, new), *_damaged(old, folder))


def differences(old: Stamp, new: Stamp) -> tuple[str, ...]:
    """Return what changed between two sets of inputs, as phrases."""
    said = []
    if old.tree != new.tree:
        said.append(f"the source tree changed: {old.tree[:12]} -> {new.tree[:12]}")
    if old.commit != new.commit:
        said.append(f"the base changed: {old.commit[:12]} -> {new.commit[:12]}")
    if old.checkout != new.checkout:
        said.append(f"the checkout moved: {old.checkout} -> {new.checkout}")
    if changed := _changed_options(old.arguments, new.arguments):
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        said.append(f"options changed: {', '.join(changed[:_SHOWN])}{more}")
    for kind, before, after in (("compiler", old.compilers, new.compilers), ("tool", old.tools, new.tools)):
        said += [
            f"{kind} changed: {before.get(name, 'none')} -> {after.get(name, 'none')}"
            for name in sorted({*before, *after})
            if before.get(name) != after.get(name)
        ]
    added = [target for target in new.targets if target not in old.targets]
    return (*said, *([f"new targets: {', '.join(added)}"] if added else []))


def _changed_options(old: tuple[str, ...], new: tuple[str, ...]) -> list[str]:
    """Return changes such as `GGML_NATIVE ON -> OFF`, without the version options, which follow the tree."""
    before, after = (dict(word.removeprefix("-D").split("=", 1) for word in words) for words in (old, new))
    names = [name for name in {**before, **after} if name not in ("LLAMA_BUILD_COMMIT", "LLAMA_BUILD_NUMBER")]
    return [
        f"{name} {before.get(name, 'unset')} -> {after.get(name, 'unset')}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _damaged(stamp: Stamp, folder: Path) -> tuple[str, ...]:
    said = []
    for artefact in stamp.artefacts:
        try:
            state = (folder / artefact.path).stat()
        except OSError:
            said.append(f"missing: {artefact.path}")
            continue
        if (state.st_size, state.st_mtime_ns) != (artefact.size, artefact.mtime_ns):
            said.append(f"modified: {artefact.path}")
    return tuple(said)
