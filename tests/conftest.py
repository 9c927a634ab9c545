"""Every test names its kind by its folder; unit tests cannot reach processes, the network or the home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

_KINDS = {"repo": "repo", "build": "build", "browser": "browser", "metal": "metal", "cross": "cross"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        folder = Path(str(item.fspath)).relative_to(Path(__file__).parent).parts[0]
        if folder in _KINDS:
            item.add_marker(_KINDS[folder])
    if "slow" not in config.option.markexpr:  # asked for with `-m slow`
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
