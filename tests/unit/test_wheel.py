from __future__ import annotations

import tomllib

from tqforge.domain import wheel

PYPROJECT = {
    "project": {
        "name": "llama_cpp_python",
        "description": "Python bindings for the llama.cpp library",
        "requires-python": ">=3.8",
        "dependencies": ["numpy>=1.20.0", "jinja2>=2.11.3"],
        "optional-dependencies": {"server": ["uvicorn>=0.22.0"]},
    }
}


def test_the_local_version_names_the_tree() -> None:
    assert wheel.version("0.3.36", "1a2b3c4d5e6f") == "0.3.36+tq.1a2b3c4d"


def test_a_local_version_never_reads_as_a_number() -> None:
    assert wheel.version("0.3.36", "0123456789ab") == "0.3.36+tq.0123456789a"


def test_the_project_file_keeps_the_bindings_metadata_and_compiles_nothing() -> None:
    made = tomllib.loads(wheel.project_file(PYPROJECT, "0.3.36+tq.1a2b3c4d"))
    assert made["project"]["version"] == "0.3.36+tq.1a2b3c4d"
    assert made["project"]["dependencies"] == ["numpy>=1.20.0", "jinja2>=2.11.3"]
    assert made["project"]["optional-dependencies"] == {"server": ["uvicorn>=0.22.0"]}
    assert made["tool"]["scikit-build"]["wheel"]["cmake"] is False
    assert made["tool"]["scikit-build"]["wheel"]["platlib"] is True
