#!/usr/bin/env bash
# The main job from a wheel: built, installed into an empty environment, run from another folder with an empty home.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python -m build --wheel --outdir "$scratch/dist" "$root" >"$scratch/build.log" 2>&1 || { cat "$scratch/build.log"; exit 1; }
python -m venv "$scratch/venv"
mkdir "$scratch/home" "$scratch/elsewhere"
"$scratch/venv/bin/pip" install --quiet "$scratch"/dist/*.whl

# The compiler cache is the caller's: what is built here serves the tests that follow.
export CCACHE_DIR="${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}"
cd "$scratch/elsewhere"
export HOME="$scratch/home" TQFORGE_HOME="${TQFORGE_HOME:-$scratch/workspace}"
unset PYTHONPATH
tqforge="$scratch/venv/bin/tqforge"
"$tqforge" build
"$tqforge" build
"$tqforge" verify --quick --json >"$scratch/report.json" || { cat "$scratch/report.json"; exit 1; }
"$scratch/venv/bin/python" - "$scratch/report.json" <<'PY'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as stream:
    report = json.load(stream)
stages = {stage["name"]: stage["status"] for stage in report["stages"]}
print("stages:", ", ".join(f"{name} {status}" for name, status in stages.items()))
assert report["status"] == "passed", report["status"]
assert {"tq3_0/tq3_0", "q8_0/tq3_0"} <= set(report["pairs"]), report["pairs"]
assert stages["source"] == stages["memory"] == stages["needle"] == "passed", stages
PY
test -z "$(ls -A "$scratch/elsewhere")" || { echo "tqforge wrote into the user's folder"; exit 1; }
