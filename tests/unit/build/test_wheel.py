from __future__ import annotations

import tomllib

from tqforge.build import wheel


def test_the_local_version_names_the_tree() -> None:
    assert wheel.version("0.3.36", "1a2b3c4d5e6f") == "0.3.36+tq.1a2b3c4d"


def test_a_local_version_never_reads_as_a_number() -> None:
    assert wheel.version("0.3.36", "0123456789ab") == "0.3.36+tq.0123456789a"


def test_the_project_file_compiles_nothing_and_is_for_this_platform() -> None:
    made = tomllib.loads(wheel.project_file("0.3.36+tq.1a2b3c4d"))
    assert made["project"]["version"] == "0.3.36+tq.1a2b3c4d"
    assert made["project"]["dependencies"] == list(wheel.REQUIRES)
    assert made["tool"]["scikit-build"]["wheel"]["cmake"] is False
    assert made["tool"]["scikit-build"]["wheel"]["platlib"] is True
