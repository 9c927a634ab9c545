#!/usr/bin/env bash
# Run every gate of the project in order; each has its own exit code. Works from any folder: bash ci/check.sh
# Needs a Python 3.11+ with tqforge installed (`pip install -e '.[dev]'`) on PATH.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

gate() {
    local code=$1 name=$2 start=$SECONDS
    shift 2
    printf '\n==> %s: %s\n' "$name" "$*"
    if ! "$@"; then
        printf 'FAILED: %s (exit %d)\n' "$name" "$code"
        exit "$code"
    fi
    printf '    %s: %d s\n' "$name" "$((SECONDS - start))"
}

gate 41 lint        ruff check .
gate 42 format      ruff format --check .
gate 43 types       mypy
gate 40 layers      lint-imports
gate 50 spelling    typos
gate 51 shell       shellcheck ci/check.sh ci/upstream_tests.sh ci/wheel.sh ci/workflows.sh .ci/run
gate 52 workflows   bash ci/workflows.sh
gate 53 cpp-format  bash ci/cpp_format.sh
gate 44 generated   python ci/generate.py --check
gate 45 patch-lint  tqforge patch lint
gate 46 export      tqforge patch export --check
gate 47 wheel       bash ci/wheel.sh
gate 48 upstream    bash ci/upstream_tests.sh
gate 49 tests       python -m pytest --cov
printf '\nall gates passed in %d s\n' "$SECONDS"
