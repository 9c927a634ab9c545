#!/usr/bin/env bash
# Check the GitHub workflows. The schemas and the command lines in them are checked by tests/unit/test_workflow.py.
set -euo pipefail
zizmor --offline --no-progress .github
if command -v actionlint >/dev/null; then
    actionlint -color
elif [ -n "${GITHUB_ACTIONS:-}" ]; then
    echo "actionlint is not installed: pip install 'tqforge[actions]'"
    exit 1
else
    echo "actionlint: skipped, not installed (pip install 'tqforge[actions]' downloads it from GitHub)"
fi
